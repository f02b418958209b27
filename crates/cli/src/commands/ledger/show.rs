//! Showing ledger jobs.

use db::Database;
use engine::Job;
use engine::store::{history, jobs};

use super::{Known, Summary, job};
use crate::commands::{print, print_json};
use crate::exit::Exit;

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

/// The migration's name, which is kept with the job.
fn name_of(job: &Job) -> String {
    let words: serde_json::Value = serde_json::from_str(&job.params).unwrap_or_default();
    words["name"].as_str().unwrap_or("ledger").to_owned()
}
