//! `crossdock ledger rollback|forget`: taking back what a job wrote, and dropping what was kept of it.

use ::ledger::Ledgers;
use clap::Args;
use db::Database;

use super::quarantine::plain;
use super::{Known, able, job};
use crate::commands::{print, print_json};
use crate::exit::Exit;

/// References shown of each kind; `--json` has the first thousand.
const SHOWN: usize = 20;

#[derive(Debug, Args)]
pub(super) struct Rollback {
    #[command(flatten)]
    known: Known,
    /// Only tell what would be removed and what would be left
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn rollback(args: &Rollback, database: &Database) -> anyhow::Result<Exit> {
    let job = job(database, args.known.job).await?;
    let told = Ledgers::new(database.clone()).rollback(job.id, args.dry_run).await.map_err(able)?;
    // What is gone already is where a rollback leads to.
    let exit = if told.left.keys().all(|why| why == "gone") { Exit::Clean } else { Exit::Partial };
    if args.known.json {
        print_json(&told)?;
        return Ok(exit);
    }
    print(told.sentence())?;
    if told.unchanged > 0 {
        print(format!("{} records were there before the job, and stay", told.unchanged))?;
    }
    for (why, named) in &told.left {
        let first: Vec<String> =
            named.references.iter().take(SHOWN).map(|reference| plain(reference.as_bytes())).collect();
        let more = if named.references.len() > SHOWN { ", …" } else { "" };
        print(format!("  {}: {}{more}", meaning(why), first.join(", ")))?;
    }
    Ok(exit)
}

fn meaning(why: &str) -> &str {
    match why {
        "gone" => "gone already",
        "altered" => "altered since, and kept",
        "doubled" => "proved by more than one row, and kept",
        "updated" => "there before and updated; the former content is not known, so they are not undone",
        "referenced" => "referred to by other rows, and kept",
        "refused" => "not let go by the database, and kept",
        "unrecognised" => "not found by the map's keys, and kept",
        other => other,
    }
}

pub(super) async fn forget(args: &Known, database: &Database) -> anyhow::Result<Exit> {
    let job = job(database, args.job).await?;
    let told = Ledgers::new(database.clone()).forget(job.id).await.map_err(able)?;
    if args.json {
        print_json(&told)?;
    } else {
        print(format!(
            "forgotten: {} manifest blocks, {} quarantined records, {} lines of the error log, {} proofs, {} staged records; \
             the job's line, history and certificate stay",
            told.blocks, told.quarantined, told.notes, told.proofs, told.staged
        ))?;
    }
    Ok(Exit::Clean)
}
