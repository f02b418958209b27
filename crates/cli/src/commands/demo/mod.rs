//! `crossdock demo`: whole journeys on one machine, each with the proof at its end.

mod ledger;
mod links;

use crate::args::{Demo, DemoSubject};
use crate::exit::Exit;
use crate::settings::File;

pub(super) async fn run(args: &Demo, database: Option<&str>, file: &File) -> anyhow::Result<Exit> {
    match &args.subject {
        None => links::run(&args.links, database, file).await,
        Some(DemoSubject::Ledger(args)) => Box::pin(ledger::run(args, database)).await,
    }
}
