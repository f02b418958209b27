//! `crossdock ledger`: declared migrations.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::ledger::service::Error;
use ::ledger::{Certificate, Folder, LedgerKind, Ledgers, Problem, Variables};
use anyhow::Context;
use clap::{Args, Subcommand};
use db::{Address, Database, Kind, Timestamp};
use engine::metrics::Metrics;
use engine::store::history;
use engine::{Job, JobId, Mode, Runner, Status, Store};
use indicatif::{ProgressBar, ProgressStyle};
use prometheus_client::registry::Registry;
use serde::Serialize;

use super::{exit_of, print, print_json, say, stop_on_signal};
use crate::exit::{Exit, usage};
use crate::settings::File;
use crate::wire;

/// How often the bar is redrawn.
const EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  crossdock ledger plan pipelines/wallet-logs --set CORE_URL=https://core.example.com
  crossdock ledger run pipelines/wallet-logs --database postgres://bank@db/core
  crossdock ledger status 0HZX… --json
  crossdock ledger verify 0HZX…")]
pub(crate) struct Ledger {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    /// Make the schema `crossdock` in the target's database
    Init {
        /// Only print the statements, for those who may not run them here
        #[arg(long)]
        print_sql: bool,
    },
    /// Check a migration against its target and source, and show ten rows; writes nothing
    Plan(Declared),
    /// Run a migration to its certificate; goes on where an unfinished one of the same folder stopped
    Run(Declared),
    /// Show how a job stands
    Status(Known),
    /// Show a job's history, a line for each segment
    History(Known),
    /// Compute the certificate anew and name each row that is not as it was settled
    Verify(Known),
}

#[derive(Debug, Args)]
struct Declared {
    /// The migration's folder
    folder: PathBuf,
    /// A value for ${NAME}; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// End with one JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Known {
    /// The job's id
    job: JobId,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Declared {
    fn read(&self) -> anyhow::Result<(Folder, Variables)> {
        let folder = Folder::load(&self.folder).map_err(|problems| refused(&self.folder, &problems))?;
        let mut pairs = Vec::new();
        for text in &self.set {
            let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
            pairs.push(pair.ok_or_else(|| usage(format!("--set takes NAME=VALUE, not '{text}'")))?);
        }
        let variables = Variables::of(pairs).with_environment(folder.text("pipeline.toml"));
        Ok((folder, variables))
    }
}

fn refused(folder: &std::path::Path, problems: &[Problem]) -> anyhow::Error {
    let lines: Vec<String> =
        problems.iter().map(|problem| format!("\n  {}/{problem}", folder.display())).collect();
    usage(format!("the declaration has {} problems:{}", problems.len(), lines.concat()))
}

pub(super) async fn run(args: &Ledger, address: &Address, file: &File) -> anyhow::Result<Exit> {
    if let LedgerCommand::Init { print_sql: true } = args.command {
        return print_sql();
    }
    if address.kind() == Kind::Sqlite {
        return Err(usage(
            "a ledger lives on Postgres; give --database postgres://… of the target's database",
        ));
    }
    let database = open(address).await?;
    match &args.command {
        LedgerCommand::Init { .. } => {
            say(format!("the schema crossdock of {address} is up to date"));
            Ok(Exit::Clean)
        }
        LedgerCommand::Plan(declared) => plan(declared, &database).await,
        LedgerCommand::Run(declared) => migrate(declared, &database, file).await,
        LedgerCommand::Status(known) => {
            let job = job(&database, known.job).await?;
            finish(&Ledgers::new(database.clone()), &job, known.json).await
        }
        LedgerCommand::History(known) => show_history(known, &database).await,
        LedgerCommand::Verify(known) => verify(known, &database).await,
    }
}

/// Opens the target's database with what a ledger needs there, and nothing else.
async fn open(address: &Address) -> anyhow::Result<Database> {
    let database = Database::open(address).await.with_context(|| format!("cannot open {address}"))?;
    for room in [&engine::ROOM, &::ledger::ROOM] {
        database.migrate(room).await.with_context(|| {
            format!("cannot migrate {address}; `crossdock ledger init --print-sql` prints the statements for who may")
        })?;
    }
    Ok(database)
}

fn print_sql() -> anyhow::Result<Exit> {
    for room in [&engine::ROOM, &::ledger::ROOM] {
        print(room.postgres_script())?;
    }
    Ok(Exit::Clean)
}

async fn plan(args: &Declared, database: &Database) -> anyhow::Result<Exit> {
    let (folder, variables) = args.read()?;
    let plan =
        Ledgers::new(database.clone()).plan(&folder, &variables).await.map_err(|error| told(args, error))?;
    if args.json {
        print_json(&plan)?;
    } else {
        print(&plan)?;
    }
    Ok(if plan.is_sound() { Exit::Clean } else { Exit::Partial })
}

fn told(args: &Declared, error: Error) -> anyhow::Error {
    match error {
        Error::Declaration(problems) => refused(&args.folder, &problems),
        other => other.into(),
    }
}

async fn migrate(args: &Declared, database: &Database, file: &File) -> anyhow::Result<Exit> {
    let (folder, variables) = args.read()?;
    let ledgers = Ledgers::new(database.clone());
    let store = Store::new(database.clone());
    let id = match ledgers.unfinished(&folder, &variables).await? {
        Some(id) => {
            say(format!("going on with job {id} from its checkpoint"));
            resume(&store, id).await?;
            id
        }
        None => ledgers.start(folder, variables, Mode::Stream).await.map_err(|error| told(args, error))?,
    };
    let limits = wire::limits(database, file.lease()?, file.workers());
    let kind = Arc::new(LedgerKind::new(database.clone()));
    let runner = Runner::new(store.clone(), vec![kind], limits, Metrics::register(&mut Registry::default()));
    let stop = stop_on_signal()?;
    let done = stop.child_token();
    let running = tokio::spawn({
        let (runner, done) = (runner.clone(), done.clone());
        async move { runner.run(done).await }
    });
    let watched = tokio::select! {
        job = watch(&store, id) => Some(job?),
        () = stop.cancelled() => {
            say("stopping at the next safe point …");
            None
        }
    };
    done.cancel();
    running.await?;
    let job = match watched {
        Some(job) => job,
        None => {
            say("stopped; the same command goes on from here");
            self::job(database, id).await?
        }
    };
    finish(&ledgers, &job, args.json).await
}

async fn resume(store: &Store, id: JobId) -> anyhow::Result<()> {
    let resting = [Status::Paused, Status::AwaitingToken, Status::Failed, Status::Waiting];
    if store.job(id).await?.is_some_and(|job| resting.contains(&job.status)) {
        store.move_job(id, Status::Queued, None, None).await?;
    }
    Ok(())
}

/// Draws a job until it rests.
async fn watch(store: &Store, id: JobId) -> anyhow::Result<Job> {
    let bar = ProgressBar::new_spinner();
    let style =
        ProgressStyle::with_template("{spinner} [{elapsed_precise}] {msg}").expect("the template is correct");
    bar.set_style(style);
    bar.enable_steady_tick(EVERY);
    let began = Instant::now();
    let mut first = None;
    loop {
        let job = match store.job(id).await {
            Ok(job) => job.context("the job is gone")?,
            Err(error) if error.is_transient() => {
                tokio::time::sleep(EVERY).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let settled = job.counts.records();
        let from = *first.get_or_insert(settled);
        #[allow(clippy::cast_precision_loss)] // A rate for people.
        let rate = (settled - from) as f64 / began.elapsed().as_secs_f64().max(0.001);
        bar.set_message(format!(
            "fetched {}, settled {settled}, quarantined {}, {rate:.0} records/s{}",
            job.fetched,
            job.counts.failed,
            left(&job, rate)
        ));
        if !matches!(job.status, Status::Queued | Status::Running | Status::Waiting) {
            bar.finish_and_clear();
            return Ok(job);
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// The time left, where the source says how much there is.
fn left(job: &Job, rate: f64) -> String {
    match job.expected {
        Some(expected) if rate > 0.0 => {
            #[allow(clippy::cast_precision_loss)] // A time for people.
            let seconds = (expected - job.counts.records()).max(0) as f64 / rate;
            format!(", {seconds:.0} s left")
        }
        _ => String::new(),
    }
}

async fn job(database: &Database, id: JobId) -> anyhow::Result<Job> {
    let job = Store::new(database.clone()).job(id).await?;
    job.filter(|job| job.kind == ::ledger::kind::KIND)
        .ok_or_else(|| usage(format!("there is no ledger job {id}")))
}

#[derive(Serialize)]
struct Summary<'a> {
    job: String,
    status: &'a str,
    outcome: Option<&'a str>,
    reason: Option<&'a str>,
    records: i64,
    pages: i64,
    imported: i64,
    updated: i64,
    unchanged: i64,
    filtered: i64,
    failed: i64,
    duplicate_in_source: i64,
    rows: i64,
    /// From the start to the last chunk.
    seconds: f64,
    /// The same with the certificate.
    total_seconds: f64,
    records_per_second: f64,
    peak_rss_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<&'a Certificate>,
}

fn seconds(job: &Job, end: Option<Timestamp>) -> f64 {
    match (job.started_at, end) {
        #[allow(clippy::cast_precision_loss)] // A time for people.
        (Some(start), Some(end)) => (end.micros() - start.micros()) as f64 / 1e6,
        _ => 0.0,
    }
}

/// Tells how a job stands, and ends with its exit code.
async fn finish(ledgers: &Ledgers, job: &Job, json: bool) -> anyhow::Result<Exit> {
    let certificate = ledgers.certificate(job.id).await?;
    let settled_at = ledgers.settled_at(job.id).await?;
    tell(job, settled_at, json, certificate.as_ref())?;
    Ok(exit_of(job.status, job.outcome()))
}

fn tell(
    job: &Job,
    settled_at: Option<Timestamp>,
    json: bool,
    certificate: Option<&Certificate>,
) -> anyhow::Result<()> {
    let (seconds, total_seconds) = (seconds(job, settled_at), seconds(job, job.finished_at.or(settled_at)));
    #[allow(clippy::cast_precision_loss)] // A rate for people.
    let rate = if seconds > 0.0 { job.counts.records() as f64 / seconds } else { 0.0 };
    let summary = Summary {
        job: job.id.to_string(),
        status: job.status.as_str(),
        outcome: job.outcome(),
        reason: job.reason.as_deref(),
        records: job.fetched,
        pages: job.pages,
        imported: job.counts.imported,
        updated: job.counts.updated,
        unchanged: job.counts.unchanged,
        filtered: job.counts.filtered,
        failed: job.counts.failed,
        duplicate_in_source: job.counts.duplicate_in_source,
        rows: job.counts.targets,
        seconds,
        total_seconds,
        records_per_second: rate,
        peak_rss_bytes: crate::peak::peak_rss_bytes(),
        certificate,
    };
    if json {
        return print_json(&summary);
    }
    let outcome = summary.outcome.map_or_else(String::new, |outcome| format!(" ({outcome})"));
    let reason = summary.reason.map_or_else(String::new, |reason| format!("\n  {reason}"));
    print(format!(
        "job {} is {}{outcome}: {} records in {seconds:.1} s, {rate:.0} records/s\n  imported {}, updated {}, unchanged {}, \
         filtered {}, given twice {}, failed {}{reason}",
        summary.job,
        summary.status,
        summary.records,
        summary.imported,
        summary.updated,
        summary.unchanged,
        summary.filtered,
        summary.duplicate_in_source,
        summary.failed,
    ))?;
    match certificate {
        Some(certificate) => print(certificate.markdown()),
        None => Ok(()),
    }
}

async fn show_history(args: &Known, database: &Database) -> anyhow::Result<Exit> {
    let job = job(database, args.job).await?;
    let mut reader = database.read().await?;
    let lines = history::segments(reader.conn(), job.id).await?;
    if args.json {
        for line in &lines {
            print_json(line)?;
        }
        return Ok(Exit::Clean);
    }
    print(
        "partition segment     pages  records imported  updated unchanged filtered twice failed  fetch ms process ms",
    )?;
    for line in &lines {
        print(format!(
            "{:>9} {:>7} {:>9} {:>8} {:>8} {:>8} {:>9} {:>8} {:>5} {:>6} {:>9} {:>10}",
            line.part,
            line.segment,
            line.pages,
            line.records,
            line.imported,
            line.updated,
            line.unchanged,
            line.filtered,
            line.duplicate_in_source,
            line.failed,
            line.fetch_micros / 1000,
            line.process_micros / 1000,
        ))?;
    }
    Ok(Exit::Clean)
}

async fn verify(args: &Known, database: &Database) -> anyhow::Result<Exit> {
    let job = job(database, args.job).await?;
    let certificate = Ledgers::new(database.clone()).verify(job.id).await?;
    if args.json {
        print_json(&certificate)?;
    } else {
        print(certificate.markdown())?;
    }
    Ok(if certificate.holds { Exit::Clean } else { Exit::Failed })
}
