//! The processes of the demo. Whatever becomes of this one, none of them is left behind: dropping one kills it, and each
//! ends by itself when this process is gone.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::{harden, peak};

/// How long a killed fetcher's partition waits for its next one. Short, because the demo is.
const LEASE_SECONDS: &str = "2";

/// What a process does in the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Has the credential of the source, so it fetches; it processes what it fetched, too.
    Fetcher,
    /// Has none, so it only processes.
    Worker,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fetcher => "fetcher",
            Self::Worker => "worker",
        }
    }
}

/// Starts the processes of one demo.
pub(super) struct Cast {
    binary: PathBuf,
    database: String,
    logs: PathBuf,
    started: usize,
}

/// A running process of the demo.
pub(super) struct Player {
    pub(super) role: Role,
    child: Child,
    log: PathBuf,
    peak: u64,
}

/// A running simulator.
pub(super) struct Simulator {
    pub(super) ready: Ready,
    _child: Child,
}

/// The line that a simulator prints when it listens.
#[derive(Deserialize)]
pub(super) struct Ready {
    pub(super) url: String,
    pub(super) token: String,
}

impl Cast {
    /// Their database is a secret as well, if its URL has a password: it is handed over by the environment.
    pub(super) fn new(database: &str, logs: &Path) -> anyhow::Result<Self> {
        let binary = std::env::current_exe().context("cannot find this binary")?;
        Ok(Self { binary, database: database.to_owned(), logs: logs.to_owned(), started: 0 })
    }

    /// This binary with nothing of the surroundings that could change what it does.
    fn command(&mut self, name: &str) -> anyhow::Result<(Command, PathBuf)> {
        self.started += 1;
        let log = self.logs.join(format!("{}-{name}.log", self.started));
        let mut command = Command::new(&self.binary);
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("CROSSDOCK_") {
                command.env_remove(variable);
            }
        }
        command
            .current_dir(&self.logs)
            .env(harden::PARENT_VARIABLE, std::process::id().to_string())
            .env_remove("CORE_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .kill_on_drop(true);
        Ok((command, log))
    }

    pub(super) async fn simulator(
        &mut self,
        count: u64,
        seed: u64,
        faults: &str,
    ) -> anyhow::Result<Simulator> {
        let (mut command, log) = self.command("simulator")?;
        let mut child = command
            .args(["simulate", "wallet-logs", "--faults", faults])
            .args(["--count", &count.to_string(), "--seed", &seed.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the simulator")?;
        let stdout = child.stdout.take().context("the simulator's output was piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await?;
        let ready = serde_json::from_str(&line)
            .with_context(|| format!("the simulator did not start: {}", tail(&log)))?;
        Ok(Simulator { ready, _child: child })
    }

    /// Starts a worker; with the source's token it fetches.
    pub(super) fn start(&mut self, role: Role, token: &str) -> anyhow::Result<Player> {
        let (mut command, log) = self.command(role.name())?;
        command
            .args(["worker", "--workers", "1"])
            .env("CROSSDOCK_DATABASE", &self.database)
            .env("CROSSDOCK_LEASE_SECONDS", LEASE_SECONDS)
            .env("CROSSDOCK_LOG", "info,sqlx=error");
        if role == Role::Fetcher {
            command.env("CORE_TOKEN", token);
        }
        let child = command.spawn().with_context(|| format!("cannot start a {}", role.name()))?;
        Ok(Player { role, child, log, peak: 0 })
    }
}

impl Player {
    /// SIGKILL, and its end.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        self.child.wait().await?;
        Ok(())
    }

    /// Notes how much memory it has used so far.
    ///
    /// # Errors
    /// If it has ended: nobody asked it to.
    pub(super) fn look(&mut self) -> anyhow::Result<u64> {
        if let Some(status) = self.child.try_wait()? {
            bail!("a {} ended with {status}: {}", self.role.name(), tail(&self.log));
        }
        let now = self.child.id().and_then(peak::peak_rss_bytes_of);
        self.peak = self.peak.max(now.unwrap_or_default());
        Ok(self.peak)
    }
}

/// The last thing that a process said.
fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("it said nothing").to_owned()
}
