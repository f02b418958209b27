//! `crossdock backup`: a copy of a SQLite database while it is in use.

use db::Address;

use super::{open, say};
use crate::args::Backup;
use crate::exit::{Exit, usage};

pub(super) async fn run(args: &Backup, address: &Address) -> anyhow::Result<Exit> {
    match address.file() {
        Some(file) if !file.exists() => return Err(usage(format!("there is no database {address}"))),
        _ => {}
    }
    let database = open(address).await?;
    database.backup(&args.file).await.map_err(|error| match error {
        db::Error::Address(message) => usage(message),
        other => other.into(),
    })?;
    say(format!("copied {address} to {}", args.file.display()));
    Ok(Exit::Clean)
}
