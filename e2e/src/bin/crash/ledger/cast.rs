//! The real binary, migrating.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use serde::Deserialize;

use super::bank::JobRow;
use super::case::Role;
use super::core::{Core, Export};
use crate::process::{Ending, Running, command};

/// The names of the fail points that a process passed, in order, are in a file that begins so.
const POINTS: &str = "points-";
/// `ledger run` ends with this when some records are in quarantine.
const PARTIAL: i32 = 3;

/// Starts processes of one migration. Started again, `ledger run` goes on.
pub(super) struct Cast<'c> {
    pub(super) binary: &'c Path,
    pub(super) folder: &'c Path,
    /// The database's URL for the processes, and for the one that runs the job.
    direct: String,
    pub(super) url: String,
    /// For the harness's own connections, which do not know the product's parameters.
    pub(super) direct_for_us: String,
    pub(super) core: &'c Core,
    pub(super) export: Export,
    migration: PathBuf,
    partial: bool,
    starts: AtomicU32,
}

/// A process of the migration.
pub(super) struct Player {
    pub(super) role: Role,
    pub(super) running: Running,
}

/// The answer of `ledger verify --json`, as far as it is looked at.
#[derive(Debug, Deserialize)]
pub(super) struct Verification {
    pub(super) holds: bool,
    pub(super) records: i64,
    pub(super) failings: Vec<String>,
}

impl<'c> Cast<'c> {
    /// `partial`: some records of the export are bad.
    pub(super) fn new(
        binary: &'c Path,
        folder: &'c Path,
        direct: String,
        core: &'c Core,
        export: Export,
        partial: bool,
    ) -> anyhow::Result<Self> {
        let migration = export.declare(folder)?;
        // One worker in each process, so that the chunks are shared out among the processes.
        std::fs::write(folder.join("crossdock.toml"), "workers = 1\n")?;
        let (url, direct_for_us) = (direct.clone(), direct.clone());
        Ok(Self {
            binary,
            folder,
            direct,
            url,
            direct_for_us,
            core,
            export,
            migration,
            partial,
            starts: AtomicU32::new(0),
        })
    }

    /// Starts a process; armed with a fail point as `CROSSDOCK_FAILPOINT` takes it.
    pub(super) fn start(&self, role: Role, failpoint: Option<&str>) -> anyhow::Result<Player> {
        let name = format!("{}-{role}", self.starts.fetch_add(1, Ordering::Relaxed) + 1);
        let url = if role == Role::Fetcher { &self.url } else { &self.direct };
        let mut command = command(self.binary, self.folder, url, &name)?;
        match role {
            Role::Fetcher => {
                let core = format!("CORE_URL={}", self.core.url());
                command.args(["ledger", "run", "--json", "--set", &core]).arg(&self.migration);
            }
            Role::Worker | Role::Joiner => drop(command.arg("worker")),
        }
        match role {
            Role::Fetcher | Role::Joiner => command.env("CORE_TOKEN", self.core.token()),
            Role::Worker => command.env_remove("CORE_TOKEN"),
        };
        command
            .env("CROSSDOCK_LEASE_SECONDS", self.export.lease_seconds.to_string())
            .env("CROSSDOCK_FAILPOINT_LOG", self.folder.join(format!("{POINTS}{name}")))
            .stdout(Stdio::from(File::create(self.folder.join(format!("{name}.out")))?));
        if let Some(failpoint) = failpoint {
            command.env("CROSSDOCK_FAILPOINT", failpoint);
        }
        Ok(Player { role, running: Running::start(&mut command)? })
    }

    /// How often a fail point was passed so far, by the process of this role that passed it most often.
    pub(super) fn passed(&self, role: Role, point: &str) -> u64 {
        let logs = std::fs::read_dir(self.folder).into_iter().flatten().filter_map(Result::ok);
        let of_role = logs.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            name.starts_with(POINTS) && name.ends_with(role.name())
        });
        let count = |path| {
            let log = std::fs::read_to_string(path).unwrap_or_default();
            log.lines().filter(|line| *line == point).count() as u64
        };
        of_role.map(count).max().unwrap_or_default()
    }

    /// Whether `ledger run` ended as it must when all is done.
    pub(super) fn is_done(&self, ending: Ending) -> bool {
        ending == if self.partial { Ending::Code(PARTIAL) } else { Ending::Done }
    }

    /// What the product itself says about a job.
    pub(super) async fn verify(&self, job: &JobRow) -> anyhow::Result<Verification> {
        let id = job.id.as_deref().context("a job has no certificate")?;
        let mut command = command(self.binary, self.folder, &self.direct, "verify")?;
        let done = command.args(["ledger", "verify", id, "--json"]).output().await?;
        serde_json::from_slice(&done.stdout).with_context(|| {
            format!("`crossdock ledger verify {id}` answered {:?}", String::from_utf8_lossy(&done.stdout))
        })
    }
}
