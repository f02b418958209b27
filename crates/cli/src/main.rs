//! The `crossdock` binary.
//!
//! `args` says what can be typed, `settings` what is meant (flag over environment over file), `wire` builds the parts,
//! and each command is a file of `commands`. Data goes to standard output, talk to standard error, and the exit code
//! is one of [`exit::Exit`].

mod args;
mod commands;
mod exit;
mod harden;
mod lock;
mod peak;
mod progress;
mod settings;
mod source_token;
mod wire;

use std::io::IsTerminal;
use std::process::ExitCode;

use args::{Cli, Command, LogFormat};
use clap::Parser;
use exit::Exit;
use tracing_subscriber::EnvFilter;

/// Records are many small pieces that one thread makes and another frees, where glibc's allocator spends a fifth of all
/// time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come here too; they go to standard output and are no failure.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Clean.into() };
        }
    };
    log(&cli);
    // Tokens are in memory: no core file may carry them to disk.
    harden::no_core_dumps();
    harden::end_with_parent();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&anyhow::Error::from(error).context("cannot start the runtime"));
            return Exit::Failed.into();
        }
    };
    let result = runtime.block_on(commands::run(cli));
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            complain(&error);
            exit::of(&error).into()
        }
    }
}

/// Progress bars and log lines would overwrite each other, so commands that draw one log warnings only.
fn log(cli: &Cli) {
    let quiet =
        matches!(cli.command, Command::Import(_) | Command::Demo(_) | Command::Job(_) | Command::Ledger(_));
    let default = if quiet { "warn" } else { "info" };
    // A ledger's statements go over millions of rows: that one takes seconds is nothing to tell.
    let statements =
        if matches!(cli.command, Command::Ledger(_) | Command::Demo(_)) { "error" } else { "warn" };
    let filter = EnvFilter::try_from_env("CROSSDOCK_LOG")
        .unwrap_or_else(|_| EnvFilter::new(format!("{default},sqlx={statements}")));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal());
    match cli.log_format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
}

#[allow(clippy::print_stderr)] // The one place where the binary complains.
fn complain(error: &anyhow::Error) {
    eprintln!("crossdock: {error:#}");
}
