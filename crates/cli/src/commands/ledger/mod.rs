//! `crossdock ledger`: declared migrations.

mod hook;
mod progress;
mod quarantine;
mod rollback;
mod run;
mod show;
mod steer;
mod until;

use std::path::PathBuf;

use ::ledger::service::Error;
use ::ledger::{Accepted, Certificate, Folder, Ledgers, Problem, Variables};
use anyhow::Context;
use clap::{Args, Subcommand};
use db::{Address, Database, Kind, Timestamp};
use engine::{Job, JobId, Status, Store};
use serde::Serialize;

use super::{exit_of, print, print_json, say};
use crate::exit::{Exit, usage};
use crate::settings::File;

/// Jobs that `status` lists.
const LISTED: u32 = 50;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  crossdock ledger plan pipelines/wallet-logs --set CORE_URL=https://core.example.com
  crossdock ledger run pipelines/wallet-logs --database postgres://bank@db/core
  crossdock ledger status
  crossdock ledger pause 0HZX…
  crossdock ledger resume 0HZX…
  crossdock ledger verify 0HZX…
  crossdock ledger quarantine list 0HZX…")]
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
    Run(Box<run::Run>),
    /// Go on with a job that rests, in this process, until it rests again
    #[command(
        after_help = "A job that is paused, failed, awaiting a token or waiting goes on at its checkpoint.
Ends as `ledger run` does: 0 clean, 3 some records are in quarantine, 1 failed, 4 awaiting a token, 5 not finished.

Example:
  crossdock ledger resume 0HZX… --json"
    )]
    Resume(Known),
    /// Stop a job at its next safe point; it goes on when it is resumed
    #[command(after_help = "Example:\n  crossdock ledger pause 0HZX…")]
    Pause(Known),
    /// End a job for good; what it wrote stays
    #[command(after_help = "Example:\n  crossdock ledger cancel 0HZX…")]
    Cancel(Known),
    /// Show how a job stands, or list all jobs, the newest first
    #[command(after_help = "Examples:
  crossdock ledger status
  crossdock ledger status 0HZX… --json")]
    Status(Asked),
    /// Show a job's history, a line for each segment
    History(Known),
    /// Compute the certificate anew and name each row that is not as it was settled
    #[command(
        after_help = "Rows that were right when they were settled and are wrong now are altered, lost or doubled;
records that were wrong then are in quarantine. With --refetch the source is fetched once more, and records whose bytes
changed there, that are gone or new there are told apart from these.
Ends with 0 if the certificate holds, 1 if it does not, 3 if it holds and the source has drifted.

Examples:
  crossdock ledger verify 0HZX… --json
  crossdock ledger verify 0HZX… --refetch"
    )]
    Verify(show::Verify),
    /// List, show, export, try again or discard the records of a job that failed
    Quarantine(quarantine::Quarantine),
    /// Remove the rows that are still as a job wrote them, and name the others
    #[command(
        after_help = "A job that is not over is cancelled first; one that runs must be paused or cancelled before.
Rows that were there before the job stay, updated ones too: their former content is not known. What is broken off goes on
when it is asked again. Ends with 0, or with 3 if something was left that is still there.

Examples:
  crossdock ledger rollback 0HZX… --dry-run
  crossdock ledger rollback 0HZX… --json"
    )]
    Rollback(rollback::Rollback),
    /// Drop the manifest, kept bytes and proofs of a job that is over; its line, history and certificate stay
    #[command(after_help = "It cannot be verified, rolled back or tried again afterwards.

Example:
  crossdock ledger forget 0HZX…")]
    Forget(Known),
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

#[derive(Debug, Args)]
struct Asked {
    /// The job's id; all jobs without one
    job: Option<JobId>,
    /// Jobs listed
    #[arg(long, default_value_t = LISTED, conflicts_with = "job")]
    limit: u32,
    /// Print JSON, one line for each job
    #[arg(long)]
    json: bool,
}

impl Declared {
    fn read(&self) -> anyhow::Result<(Folder, Variables)> {
        let folder = Folder::load(&self.folder).map_err(|problems| refused(&self.folder, &problems))?;
        let variables = Variables::of(pairs(&self.set)?).with_environment(folder.text("pipeline.toml"));
        Ok((folder, variables))
    }
}

/// The names and values of `--set`.
fn pairs(set: &[String]) -> anyhow::Result<Vec<(&str, &str)>> {
    let wrong = |text: &str| usage(format!("--set takes NAME=VALUE, not '{text}'"));
    set.iter()
        .map(|text| text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| wrong(text)))
        .collect()
}

/// Errors that the person who typed can cure.
fn able(error: Error) -> anyhow::Error {
    match error {
        Error::State(text) => usage(text),
        Error::NoSuchJob(_) => usage(error.to_string()),
        other => other.into(),
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
        LedgerCommand::Run(args) => run::migrate(args, &database, file).await,
        LedgerCommand::Resume(known) => steer::resume(known, &database, file).await,
        LedgerCommand::Pause(known) => steer::pause(known, &database).await,
        LedgerCommand::Cancel(known) => steer::cancel(known, &database).await,
        LedgerCommand::Status(Asked { job: None, limit, json }) => {
            show::list_jobs(&database, *limit, *json).await
        }
        LedgerCommand::Status(Asked { job: Some(id), json, .. }) => {
            let job = job(&database, *id).await?;
            finish(&Ledgers::new(database.clone()), &job, *json).await
        }
        LedgerCommand::History(known) => show::show_history(known, &database).await,
        LedgerCommand::Verify(args) => show::verify(args, &database).await,
        LedgerCommand::Quarantine(args) => quarantine::run(args, &database).await,
        LedgerCommand::Rollback(args) => rollback::rollback(args, &database).await,
        LedgerCommand::Forget(known) => rollback::forget(known, &database).await,
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
    /// Changes of the folder that were accepted on the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<Accepted>,
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
    let mut summary = Summary::of(job, settled_at, certificate.as_ref());
    summary.changes = ledgers.accepted(job.id).await?;
    tell(&summary, json)?;
    // A completed job's certificate is computed anew when records of its quarantine were tried again.
    let is_broken = job.status == Status::Completed && certificate.as_ref().is_some_and(|proof| !proof.holds);
    Ok(match job.status {
        Status::Queued | Status::Running | Status::Waiting | Status::Paused => Exit::Unfinished,
        _ if is_broken => Exit::Failed,
        status => exit_of(status, job.outcome()),
    })
}

impl<'a> Summary<'a> {
    fn of(job: &'a Job, settled_at: Option<Timestamp>, certificate: Option<&'a Certificate>) -> Self {
        let (seconds, total_seconds) =
            (seconds(job, settled_at), seconds(job, job.finished_at.or(settled_at)));
        #[allow(clippy::cast_precision_loss)] // A rate for people.
        let rate = if seconds > 0.0 { job.counts.records() as f64 / seconds } else { 0.0 };
        Self {
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
            changes: Vec::new(),
        }
    }
}

fn tell(summary: &Summary<'_>, json: bool) -> anyhow::Result<()> {
    if json {
        return print_json(summary);
    }
    let outcome = summary.outcome.map_or_else(String::new, |outcome| format!(" ({outcome})"));
    let reason = summary.reason.map_or_else(String::new, |reason| format!("\n  {reason}"));
    print(format!(
        "job {} is {}{outcome}: {} records in {:.1} s, {:.0} records/s\n  imported {}, updated {}, unchanged {}, \
         filtered {}, given twice {}, failed {}{reason}",
        summary.job,
        summary.status,
        summary.records,
        summary.seconds,
        summary.records_per_second,
        summary.imported,
        summary.updated,
        summary.unchanged,
        summary.filtered,
        summary.duplicate_in_source,
        summary.failed,
    ))?;
    for accepted in &summary.changes {
        let files: Vec<String> = accepted.changes.iter().map(ToString::to_string).collect();
        print(format!("  changed on the way, after {} records: {}", accepted.settled, files.join("; ")))?;
    }
    match summary.certificate {
        Some(certificate) => print(certificate.markdown()),
        None => Ok(()),
    }
}
