//! `crossdock ledger run`: a migration to its certificate.

use std::sync::Arc;

use ::ledger::{Changed, LedgerKind, Ledgers, RowRate, Rules, Unfinished};
use anyhow::Context;
use clap::Args;
use db::{Database, Timestamp};
use engine::metrics::Metrics;
use engine::{Job, JobId, Mode, RejectLimit, Runner, Status, Store};
use jiff::tz::TimeZone;
use prometheus_client::registry::Registry;

use super::progress::{EVERY, Progress};
use super::until::Until;
use super::{Declared, Summary, finish, hook, job, told};
use crate::commands::{say, stop_on_signal};
use crate::exit::{Exit, usage};
use crate::settings::File;
use crate::wire;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 complete and clean, 1 failed, 2 usage, 3 complete but some records are in quarantine, \
4 the credential is needed, 5 not finished (paused by --until or by somebody, or this process was stopped): the same command \
goes on.

Limits are kept with the job, so that every process that works on it obeys them, and stay until others are given.

Examples:
  crossdock ledger run pipelines/wallet-logs --dry-run
  crossdock ledger run pipelines/wallet-logs --until 06:00 --max-rows-per-second 2000
  crossdock ledger run pipelines/wallet-logs --stop-on-rejects 0.5% --on-complete 'mail -s \"$CROSSDOCK_STATUS\" ops'"
)]
pub(super) struct Run {
    #[command(flatten)]
    declared: Declared,
    /// Do everything but the writes, and tell what would become of the records
    #[arg(long, conflicts_with = "accept_changes")]
    dry_run: bool,
    /// Pause at this time (06:00 on this machine's clock, or RFC 3339)
    #[arg(long, value_name = "TIME")]
    until: Option<Until>,
    /// Rows that each process may write in a second, all its workers together; or off
    #[arg(long, value_name = "N")]
    max_rows_per_second: Option<RowRate>,
    /// Stop if more records fail: a share, judged after 10,000 records, or a number; or off [default: 5%]
    #[arg(long, value_name = "LIMIT")]
    stop_on_rejects: Option<RejectLimit>,
    /// Run this with `sh -c` when the job has come to rest, its summary on standard input
    #[arg(long, value_name = "COMMAND")]
    on_complete: Option<String>,
    /// Go on with an unfinished job though its folder has changed
    #[arg(long)]
    accept_changes: bool,
    /// Begin anew though a job is unfinished
    #[arg(long, conflicts_with = "accept_changes")]
    new_job: bool,
}

/// What a process does for a job while it hosts it.
#[derive(Default)]
struct Hosting<'h> {
    json: bool,
    until: Option<Timestamp>,
    on_complete: Option<&'h str>,
}

pub(super) async fn migrate(args: &Run, database: &Database, file: &File) -> anyhow::Result<Exit> {
    let until = match &args.until {
        None => None,
        Some(until) => Some(next(until)?),
    };
    let id = begin(args, database).await?;
    let hosting = Hosting { json: args.declared.json, until, on_complete: args.on_complete.as_deref() };
    host(database, file, id, &hosting).await
}

/// Hosts a job in this process until it rests or a signal comes, and tells how it stands then.
pub(super) async fn drive(database: &Database, file: &File, id: JobId, json: bool) -> anyhow::Result<Exit> {
    host(database, file, id, &Hosting { json, ..Hosting::default() }).await
}

fn next(until: &Until) -> anyhow::Result<Timestamp> {
    let zone = TimeZone::try_system().map_err(|error| {
        usage(format!("this machine's time zone is not known ({error}); give --until with an offset"))
    })?;
    let next = until.next(Timestamp::here(), &zone).map_err(|why| usage(format!("--until: {why}")))?;
    say(format!("until {next}"));
    Ok(next)
}

/// Finds the job to go on with, or makes one.
async fn begin(args: &Run, database: &Database) -> anyhow::Result<JobId> {
    let declared = &args.declared;
    let (folder, variables) = declared.read()?;
    let ledgers = Ledgers::new(database.clone());
    let store = Store::new(database.clone());
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Stream };
    let rules = Rules { stop_on_rejects: args.stop_on_rejects, rows_per_second: args.max_rows_per_second };
    let found = if args.new_job {
        Unfinished::None
    } else {
        ledgers.unfinished(&folder, &variables, mode).await.map_err(|error| told(declared, error))?
    };
    match found {
        Unfinished::Same(id) => {
            say(format!("going on with job {id} from its checkpoint"));
            ledgers.set_rules(id, rules).await?;
            resume(&store, id).await?;
            return Ok(id);
        }
        Unfinished::Changed(changed) if args.dry_run => give_up(&store, &changed).await?,
        Unfinished::Changed(changed) if args.accept_changes => {
            let id = changed.job;
            let accepted = ledgers.accept_changes(id, folder, variables).await;
            let changes = accepted.map_err(|error| told(declared, error))?;
            let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
            say(format!("going on with job {id} from its checkpoint, with changed {}", changes.join(", ")));
            ledgers.set_rules(id, rules).await?;
            resume(&store, id).await?;
            return Ok(id);
        }
        Unfinished::Changed(changed) => return Err(refused(&changed)),
        Unfinished::OtherValues { job, names } => say(format!(
            "job {job} of this migration is not finished, but has another value of {}; this is a new job",
            names.join(", ")
        )),
        Unfinished::None => {}
    }
    let id =
        ledgers.start_with(folder, variables, mode, rules).await.map_err(|error| told(declared, error))?;
    say(format!("job {id}"));
    Ok(id)
}

fn refused(changed: &Changed) -> anyhow::Error {
    let what: Vec<String> = changed.what.iter().map(|change| format!("\n  {change}")).collect();
    usage(format!(
        "job {} of this migration is not finished ({}), and the folder is not the one that it began with:{}\n--accept-changes \
         goes on with the folder as it is now; --new-job leaves that job alone and begins anew",
        changed.job,
        changed.status,
        what.concat()
    ))
}

/// A dry run of a folder that has changed since says nothing any more. One that somebody is at is left alone.
async fn give_up(store: &Store, changed: &Changed) -> anyhow::Result<()> {
    let rests = !matches!(changed.status, Status::Queued | Status::Running | Status::Waiting);
    if rests && store.move_job(changed.job, Status::Cancelled, None, None).await? {
        say(format!("job {}, a dry run of the folder as it was, is cancelled", changed.job));
    }
    Ok(())
}

async fn host(database: &Database, file: &File, id: JobId, hosting: &Hosting<'_>) -> anyhow::Result<Exit> {
    let store = Store::new(database.clone());
    let limits = wire::limits(database, file.lease()?, file.workers());
    let kind = Arc::new(LedgerKind::new(database.clone()));
    let runner = Runner::new(store.clone(), vec![kind], limits, Metrics::register(&mut Registry::default()));
    let stop = stop_on_signal()?;
    let done = stop.child_token();
    let running = tokio::spawn({
        let (runner, done) = (runner.clone(), done.clone());
        async move { runner.run(done).await }
    });
    tokio::select! {
        rested = watch(&store, id, hosting) => rested?,
        () = stop.cancelled() => say("stopping at the next safe point …"),
    }
    done.cancel();
    running.await?;
    // Chunks that were under way when the job was moved have been settled since.
    let ended = job(database, id).await?;
    let ledgers = Ledgers::new(database.clone());
    if is_at_work(ended.status) {
        say("stopped; the same command goes on from here");
        return finish(&ledgers, &ended, hosting.json).await;
    }
    let exit = finish(&ledgers, &ended, hosting.json).await?;
    if let Some(command) = hosting.on_complete {
        call(command, &ledgers, &ended).await?;
    }
    Ok(exit)
}

fn is_at_work(status: Status) -> bool {
    matches!(status, Status::Queued | Status::Running | Status::Waiting)
}

/// Runs the command that somebody wants to be run at the end.
async fn call(command: &str, ledgers: &Ledgers, job: &Job) -> anyhow::Result<()> {
    let certificate = ledgers.certificate(job.id).await?;
    let summary = Summary::of(job, ledgers.settled_at(job.id).await?, certificate.as_ref());
    let text = serde_json::to_string(&summary).context("cannot write JSON")?;
    let variables = [
        ("CROSSDOCK_JOB", summary.job.as_str()),
        ("CROSSDOCK_STATUS", summary.status),
        ("CROSSDOCK_OUTCOME", summary.outcome.unwrap_or_default()),
    ];
    let ended = hook::run(command, &variables, &format!("{text}\n"), hook::TIME_LIMIT).await;
    say(format!("the command of --on-complete {ended}"));
    Ok(())
}

async fn resume(store: &Store, id: JobId) -> anyhow::Result<()> {
    let resting = [Status::Paused, Status::AwaitingToken, Status::Failed, Status::Waiting];
    if store.job(id).await?.is_some_and(|job| resting.contains(&job.status)) {
        store.move_job(id, Status::Queued, None, None).await?;
    }
    Ok(())
}

/// Shows a job until it rests, and pauses it when its time is over.
async fn watch(store: &Store, id: JobId, hosting: &Hosting<'_>) -> anyhow::Result<()> {
    let mut progress = Progress::new(hosting.json);
    loop {
        match look(store, id, hosting.until).await {
            Ok(job) => {
                let job = job.context("the job is gone")?;
                progress.show(&job);
                if !is_at_work(job.status) {
                    progress.clear();
                    return Ok(());
                }
            }
            // The runner tries again as well.
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn look(store: &Store, id: JobId, until: Option<Timestamp>) -> db::Result<Option<Job>> {
    if let Some(until) = until.filter(|until| Timestamp::here() >= *until) {
        let reason = format!("its run was to go on until {until}; it goes on when it is resumed");
        store.move_job(id, Status::Paused, Some(&reason), None).await?;
    }
    store.job(id).await
}
