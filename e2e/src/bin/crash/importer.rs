//! The real binary, importing.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use tokio::process::{Child, Command};

use crate::ground::Ground;
use crate::simulator::Simulator;

/// The signal of an abort (POSIX).
const SIGABRT: i32 = 6;
/// An import that takes longer hangs.
const PROCESS_LIMIT: Duration = Duration::from_secs(600);

/// Starts imports of one account into one database. Started again, the same command goes on.
pub(crate) struct Importer<'w> {
    pub(crate) binary: &'w Path,
    pub(crate) ground: &'w Ground<'w>,
    pub(crate) simulator: &'w Simulator,
    pub(crate) url: String,
    /// A fetcher's lease, for which the successor of a killed one waits.
    lease_seconds: u64,
    starts: AtomicU32,
}

/// A running import.
pub(crate) struct Running {
    child: Child,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    Aborted,
    Code(i32),
    Signal(i32),
}

/// One import as `job list --json` tells it.
#[derive(Debug, Deserialize)]
struct JobLine {
    id: String,
}

/// The object with which `import --json` ends.
#[derive(Debug, Deserialize)]
struct Summary {
    job: String,
}

/// The answer of `job verify --json`.
#[derive(Debug, Deserialize)]
pub(crate) struct Verification {
    pub(crate) records: u64,
    pub(crate) holds: bool,
}

impl<'w> Importer<'w> {
    pub(crate) fn new(
        binary: &'w Path,
        ground: &'w Ground<'w>,
        simulator: &'w Simulator,
        url: String,
        lease_seconds: u64,
    ) -> Self {
        Self { binary, ground, simulator, url, lease_seconds, starts: AtomicU32::new(0) }
    }

    /// The command with nothing of the surroundings in it but what is set here.
    fn command(&self, url: &str, name: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(self.binary);
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("CROSSDOCK_") {
                command.env_remove(variable);
            }
        }
        let log = File::create(self.ground.folder.join(format!("{name}.err")))?;
        command
            .current_dir(&self.ground.folder)
            .args(["--database", url])
            .stdin(Stdio::null())
            .stderr(Stdio::from(log))
            .kill_on_drop(true);
        Ok(command)
    }

    /// Starts the import, or goes on with it; armed with `POINT:HIT`, it aborts there.
    pub(crate) fn start(&self, failpoint: Option<&str>) -> anyhow::Result<Running> {
        let name = format!("import{}", self.starts.fetch_add(1, Ordering::Relaxed) + 1);
        let mut command = self.command(&self.url, &name)?;
        command
            .args(["import", "bitly", "--pace", "none", "--json", "--domain", self.simulator.domain()])
            .args(["--base-url", self.simulator.url()])
            .env("CROSSDOCK_SOURCE_TOKEN", self.simulator.token())
            .env("CROSSDOCK_LEASE_SECONDS", self.lease_seconds.to_string())
            .env("CROSSDOCK_FAILPOINT_LOG", self.ground.points_log())
            .stdout(Stdio::from(File::create(self.ground.folder.join(format!("{name}.out")))?));
        if let Some(failpoint) = failpoint {
            command.env("CROSSDOCK_FAILPOINT", failpoint);
        }
        let child = command.spawn().with_context(|| format!("cannot start {}", self.binary.display()))?;
        Ok(Running { child })
    }

    async fn ask<T: for<'de> Deserialize<'de>>(&self, args: &[&str]) -> anyhow::Result<T> {
        let mut command = self.command(&self.ground.url(None)?, "job")?;
        let done = command.arg("job").args(args).arg("--json").output().await?;
        serde_json::from_slice(&done.stdout).with_context(|| {
            format!("`crossdock job {}` answered {:?}", args.join(" "), String::from_utf8_lossy(&done.stdout))
        })
    }

    /// The ids of the `count` imports of the database. A single one is the one whose process came to its end last.
    pub(crate) async fn jobs(&self, count: usize) -> anyhow::Result<Vec<String>> {
        if count != 1 {
            let jobs: Vec<JobLine> = self.ask(&["list"]).await?;
            return Ok(jobs.into_iter().map(|job| job.id).collect());
        }
        let file = self.ground.folder.join(format!("import{}.out", self.starts.load(Ordering::Relaxed)));
        let summary: Summary = serde_json::from_slice(&std::fs::read(file)?)
            .context("the import did not end with its object")?;
        Ok(vec![summary.job])
    }

    /// What the product itself says about an import.
    pub(crate) async fn verify(&self, job: &str) -> anyhow::Result<Verification> {
        self.ask(&["verify", job]).await
    }
}

impl Running {
    /// Waits for the end.
    pub(crate) async fn end(&mut self) -> anyhow::Result<Ending> {
        match tokio::time::timeout(PROCESS_LIMIT, self.child.wait()).await {
            Ok(status) => Ok(ending(status?)),
            Err(_) => {
                self.child.kill().await?;
                bail!("the import hangs: no end within {PROCESS_LIMIT:?}")
            }
        }
    }

    /// Waits for the end for so long.
    pub(crate) async fn ends_within(&mut self, time: Duration) -> anyhow::Result<Option<Ending>> {
        match tokio::time::timeout(time, self.child.wait()).await {
            Ok(status) => Ok(Some(ending(status?))),
            Err(_) => Ok(None),
        }
    }

    /// SIGKILL. Tells whether it ended the process.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<bool> {
        self.child.start_kill()?;
        Ok(self.child.wait().await?.signal().is_some())
    }
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ending::Done,
        (Some(code), _) => Ending::Code(code),
        (None, Some(SIGABRT)) => Ending::Aborted,
        (None, signal) => Ending::Signal(signal.unwrap_or_default()),
    }
}
