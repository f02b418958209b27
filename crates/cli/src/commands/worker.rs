//! `crossdock worker`: one more process for the jobs of a Postgres database.

use db::{Address, Kind};
use prometheus_client::registry::Registry;

use super::{say, stop_on_signal};
use crate::args::{SourceArgs, Worker};
use crate::exit::{Exit, usage};
use crate::settings::File;
use crate::wire;

pub(super) async fn run(args: &Worker, address: &Address, file: &File) -> anyhow::Result<Exit> {
    if address.kind() == Kind::Sqlite {
        return Err(usage(
            "workers share a Postgres database; on SQLite `crossdock serve` runs the jobs itself",
        ));
    }
    let (database, ledger_alone) = wire::open_to_work(address).await?;
    let limits = wire::limits(&database, file.lease()?, args.workers.or(file.workers()));
    let mut registry = Registry::default();
    let runner = if ledger_alone {
        wire::ledger_runner(&database, limits, &mut registry)
    } else {
        let longest = file.destination_length_max()?;
        let no_caches = imports::sink::no_caches();
        wire::parts(&database, &SourceArgs::default(), limits, longest, &mut registry, no_caches).runner
    };
    let stop = stop_on_signal()?;
    say(format!("working on the jobs of {address}; Ctrl-C stops at the next safe point"));
    runner.run(stop).await;
    Ok(Exit::Clean)
}
