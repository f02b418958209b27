//! The real binary, importing.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use serde::Deserialize;

use crate::ground::Ground;
use crate::links::simulator::Simulator;
use crate::process::{Running, command};

/// The one role that processes of an import have.
pub(crate) const ROLE: &str = "import";

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

    /// Starts the import, or goes on with it; armed with `POINT:HIT`, it aborts there.
    pub(crate) fn start(&self, failpoint: Option<&str>) -> anyhow::Result<Running> {
        let name = format!("import{}", self.starts.fetch_add(1, Ordering::Relaxed) + 1);
        let mut command = command(self.binary, &self.ground.folder, &self.url, &name)?;
        command
            .args(["import", "bitly", "--pace", "none", "--json", "--domain", self.simulator.domain()])
            .args(["--base-url", self.simulator.url()])
            .env("CROSSDOCK_SOURCE_TOKEN", self.simulator.token())
            .env("CROSSDOCK_LEASE_SECONDS", self.lease_seconds.to_string())
            .env("CROSSDOCK_FAILPOINT_LOG", self.ground.points_log(ROLE))
            .stdout(Stdio::from(File::create(self.ground.folder.join(format!("{name}.out")))?));
        if let Some(failpoint) = failpoint {
            command.env("CROSSDOCK_FAILPOINT", failpoint);
        }
        Running::start(&mut command)
    }

    async fn ask<T: for<'de> Deserialize<'de>>(&self, args: &[&str]) -> anyhow::Result<T> {
        let mut command = command(self.binary, &self.ground.folder, &self.ground.url(None)?, "job")?;
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
