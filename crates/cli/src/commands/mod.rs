//! The commands, one file each.

mod backup;
mod demo;
mod domain;
mod import;
mod job;
mod ledger;
mod serve;
mod simulate;
mod token;
mod verify_slugs;
mod worker;

use std::io::Write;

use anyhow::Context;
use db::{Database, Timestamp};
use links::Workspace;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

pub(crate) use ledger::Ledger;

use crate::args::{Cli, Command, SimulateVendor};
use crate::exit::Exit;
use crate::{settings, wire};

/// Runs what was typed.
pub(crate) async fn run(cli: Cli) -> anyhow::Result<Exit> {
    let file = settings::file(&cli)?;
    let address = file.database(&cli)?;
    match cli.command {
        Command::Demo(args) => demo::run(&args, cli.database.as_deref(), &file).await,
        Command::Serve(mut args) => {
            file.serve(&mut args)?;
            serve::run(&args, &address, &file).await
        }
        Command::Worker(args) => worker::run(&args, &address, &file).await,
        Command::Import(args) => import::run(&args, &address, &file).await,
        Command::Job(args) => job::run(&args, &address, &file).await,
        Command::Ledger(args) => ledger::run(&args, &address, &file).await,
        Command::Domain(args) => domain::run(&args, &address).await,
        Command::Token(args) => token::run(&args, &address).await,
        Command::Backup(args) => backup::run(&args, &address).await,
        Command::Simulate(args) => match args.vendor {
            SimulateVendor::Bitly(args) => simulate::bitly(&args).await,
            SimulateVendor::WalletLogs(args) => simulate::wallet_logs(&args).await,
        },
    }
}

/// Writes a line of data to standard output. A closed pipe ends the command like any failure to write.
fn print(line: impl std::fmt::Display) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Writes one line of JSON to standard output.
fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(serde_json::to_string(value).context("cannot write JSON")?)
}

/// Talks to the person: standard error.
#[allow(clippy::print_stderr)] // This is what standard error is for.
fn say(line: impl std::fmt::Display) {
    eprintln!("{line}");
}

/// A token that is cancelled by Ctrl-C or SIGTERM.
fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let stop = CancellationToken::new();
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let cancelled = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancelled.cancel();
    });
    Ok(stop)
}

/// The default workspace, made if it is missing.
async fn default_workspace(database: &Database) -> anyhow::Result<Workspace> {
    let mut tx = database.begin().await?;
    let (workspace, made) = links::ensure_default_workspace(&mut tx, Timestamp::here()).await?;
    tx.commit().await?;
    if made {
        say(format!("made the workspace '{}'", workspace.name));
    }
    Ok(workspace)
}

/// The exit code that tells how a job stands.
fn exit_of(status: engine::Status, outcome: Option<&str>) -> Exit {
    match (status, outcome) {
        (engine::Status::Completed, Some("clean")) => Exit::Clean,
        (engine::Status::Completed, _) => Exit::Partial,
        (engine::Status::AwaitingToken, _) => Exit::AwaitingToken,
        _ => Exit::Failed,
    }
}

/// Opens and migrates the database of a command.
async fn open(address: &db::Address) -> anyhow::Result<Database> {
    wire::open(address).await
}

/// Chance for secrets, seeded by the operating system.
fn chance() -> rand::rngs::StdRng {
    rand::SeedableRng::from_os_rng()
}
