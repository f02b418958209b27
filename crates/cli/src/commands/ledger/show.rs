//! Showing ledger jobs.

use ::ledger::certificate::RetryLine;
use ::ledger::drift::Drift;
use ::ledger::{Certificate, LedgerKind, Ledgers};
use clap::Args;
use db::Database;
use engine::store::history::SegmentLine;
use engine::store::{history, jobs};
use engine::{Job, Kind as _};
use serde::Serialize;

use super::quarantine::plain;
use super::{Known, Summary, able, job};
use crate::commands::{print, print_json, say};
use crate::exit::{Exit, usage};

/// Lists jobs, the newest first.
pub(super) async fn list_jobs(database: &Database, limit: u32, json: bool) -> anyhow::Result<Exit> {
    let mut reader = database.read().await?;
    let jobs = jobs::list(reader.conn(), ::ledger::kind::KIND, None, i64::from(limit)).await?;
    drop(reader);
    for job in &jobs {
        let summary = Summary::of(job, None, None);
        if json {
            print_json(&summary)?;
            continue;
        }
        let name = name_of(job);
        let outcome = summary.outcome.map_or_else(String::new, |outcome| format!(" ({outcome})"));
        let reason = summary.reason.map_or_else(String::new, |reason| format!(": {reason}"));
        print(format!(
            "{}  {}{outcome}  {name}: {} records, {} failed, made {}{reason}",
            summary.job, summary.status, summary.records, summary.failed, job.created_at
        ))?;
    }
    Ok(Exit::Clean)
}

pub(super) async fn show_history(args: &Known, database: &Database) -> anyhow::Result<Exit> {
    let job = job(database, args.job).await?;
    let mut reader = database.read().await?;
    let lines = history::segments(reader.conn(), job.id).await?;
    drop(reader);
    let retries = Ledgers::new(database.clone()).retries(job.id).await?;
    let retry_of = |line: &SegmentLine| {
        retries.iter().find(|retry| (retry.part, retry.segment) == (line.part, line.segment))
    };
    if args.json {
        for line in &lines {
            print_json(&HistoryLine { segment: line, retry: retry_of(line) })?;
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
        if let Some(retry) = retry_of(line) {
            let of = retry.code.as_deref().map_or_else(String::new, |code| format!(" of {code}"));
            let folder = if retry.folder_hash == retry.folder_hash_before {
                "the job's folder"
            } else {
                "another folder"
            };
            let broken = if retry.finished { "" } else { "; broken off" };
            print(format!(
                "          retry {} at {}: {} records{of} tried with {folder}, {} left the quarantine{broken}",
                retry.number, retry.began_at, retry.taken, retry.moved
            ))?;
        }
    }
    Ok(Exit::Clean)
}

/// A line of the history; that of a retry counts what left the quarantine as failed no more.
#[derive(Serialize)]
struct HistoryLine<'a> {
    #[serde(flatten)]
    segment: &'a SegmentLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<&'a RetryLine>,
}

#[derive(Debug, Args)]
pub(super) struct Verify {
    #[command(flatten)]
    known: Known,
    /// Fetch the source once more and tell what has changed there
    #[arg(long)]
    refetch: bool,
}

#[derive(Serialize)]
struct Verified<'a> {
    #[serde(flatten)]
    certificate: &'a Certificate,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<&'a Drift>,
}

pub(super) async fn verify(args: &Verify, database: &Database) -> anyhow::Result<Exit> {
    let job = job(database, args.known.job).await?;
    let ledgers = Ledgers::new(database.clone());
    let certificate = ledgers.verify(job.id).await.map_err(able)?;
    let drift = if args.refetch {
        let source = LedgerKind::new(database.clone()).source(&job).await?;
        let source = source.ok_or_else(|| {
            usage("the source cannot be asked from here; give its credentials, or its file, as `ledger run` needs them")
        })?;
        say("fetching the source once more …");
        Some(ledgers.drift(job.id, &*source).await.map_err(able)?)
    } else {
        None
    };
    if args.known.json {
        print_json(&Verified { certificate: &certificate, drift: drift.as_ref() })?;
    } else {
        print(certificate.markdown())?;
        if let Some(drift) = &drift {
            tell_drift(drift)?;
        }
    }
    Ok(match (certificate.holds, drift) {
        (false, _) => Exit::Failed,
        (true, Some(drift)) if !drift.is_none() => Exit::Partial,
        (true, _) => Exit::Clean,
    })
}

fn tell_drift(drift: &Drift) -> anyhow::Result<()> {
    print(format!("\nThe source gives {} records now.\n", drift.records))?;
    for (what, named) in [
        ("changed there since", &drift.changed),
        ("gone there since", &drift.gone),
        ("new there since", &drift.new),
    ] {
        let first: Vec<String> =
            named.references.iter().take(10).map(|one| format!("`{}`", plain(one.as_bytes()))).collect();
        let names = if first.is_empty() { String::new() } else { format!(": {}", first.join(", ")) };
        print(format!("- {what}: {}{names}", named.count))?;
    }
    Ok(())
}

/// The migration's name, which is kept with the job.
fn name_of(job: &Job) -> String {
    let words: serde_json::Value = serde_json::from_str(&job.params).unwrap_or_default();
    words["name"].as_str().unwrap_or("ledger").to_owned()
}
