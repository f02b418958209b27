//! Showing ledger jobs.

use db::Database;
use engine::store::history;

use super::{Known, job};
use crate::commands::{print, print_json};
use crate::exit::Exit;

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
