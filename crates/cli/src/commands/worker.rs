//! `crossdock worker`: one more process for the jobs of a Postgres database.

use db::{Address, Kind};
use prometheus_client::registry::Registry;

use super::{open, say, stop_on_signal};
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
    let database = open(address).await?;
    let limits = wire::limits(&database, file.lease()?, args.workers.or(file.workers()));
    let mut registry = Registry::default();
    let longest = file.destination_length_max()?;
    let no_caches = imports::sink::no_caches();
    let parts = wire::parts(&database, &SourceArgs::default(), limits, longest, &mut registry, no_caches);
    let stop = stop_on_signal()?;
    say(format!("working on the jobs of {address}; Ctrl-C stops at the next safe point"));
    parts.runner.run(stop).await;
    Ok(Exit::Clean)
}
