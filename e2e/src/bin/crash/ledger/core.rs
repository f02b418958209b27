//! The simulated core-service, served by the real binary in a process of its own, and the declaration that reads it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::http;

/// The worked example.
pub(super) const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../pipelines/wallet-logs");

/// What is exported, how slowly, and how it is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Export {
    pub(crate) records: u64,
    pub(crate) seed: u64,
    /// Of the records, as `simulate wallet-logs` takes them.
    pub(crate) faults: &'static str,
    pub(crate) latency_ms: u64,
    pub(crate) partitions: u64,
    pub(crate) page_records: u64,
    pub(crate) segment_pages: u64,
    pub(crate) chunk_records: u64,
    pub(crate) lease_seconds: u64,
}

impl Export {
    /// The pages of a whole walk.
    pub(crate) fn pages(&self) -> u64 {
        self.records.div_ceil(self.page_records)
    }

    /// Writes the example's declaration for this export; its folder.
    pub(super) fn declare(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let into = folder.join("migration");
        std::fs::create_dir_all(into.join("checks"))?;
        for name in
            ["map.sql", "proof.sql", "checks/accounts.sql", "checks/continuity.sql", "checks/movements.sql"]
        {
            std::fs::copy(Path::new(EXAMPLE).join(name), into.join(name)).with_context(|| name.to_owned())?;
        }
        let shards: Vec<String> = (0..self.partitions).map(|shard| format!("\"{shard}\"")).collect();
        let partitions = format!(
            "[source.partitions]\nparam = \"shard\"\nvalues = [{}]\nside_by_side = 1\n\n",
            shards.join(", ")
        );
        let more = format!(
            "{}[stage]\nsegment_pages = {}\nchunk_records = {}\n\n[record]",
            if self.partitions > 1 { &partitions } else { "" },
            self.segment_pages,
            self.chunk_records
        );
        let text = std::fs::read_to_string(Path::new(EXAMPLE).join("pipeline.toml"))?;
        let text = text.replace("size = 1000", &format!("size = {}", self.page_records));
        std::fs::write(into.join("pipeline.toml"), text.replace("[record]", &more))?;
        Ok(into)
    }
}

/// The line that a simulator prints when it listens.
#[derive(Debug, Deserialize)]
struct Ready {
    url: String,
    token: String,
}

/// A running simulator; dropping it ends it.
pub(super) struct Core {
    ready: Ready,
    _child: Child,
}

/// What a simulator says of itself.
#[derive(Debug, Deserialize)]
pub(super) struct Told {
    pub(super) count: u64,
    pub(super) good: u64,
    pub(super) bad: u64,
    pub(super) repeated: u64,
    asked: Stats,
}

#[derive(Debug, Deserialize)]
struct Stats {
    pages: Vec<PageCalls>,
}

#[derive(Debug, Deserialize)]
struct PageCalls {
    asked: u64,
}

impl Told {
    /// Pages asked for at least once.
    pub(super) fn pages(&self) -> u64 {
        self.asked.pages.len() as u64
    }

    /// Requests beyond one for each page in each of `walks` whole walks.
    pub(super) fn again(&self, walks: u64) -> u64 {
        self.asked.pages.iter().map(|page| page.asked.saturating_sub(walks)).sum()
    }
}

fn simulate(binary: &Path, export: Export) -> Command {
    let mut command = Command::new(binary);
    command
        .args(["simulate", "wallet-logs", "--count", &export.records.to_string()])
        .args(["--seed", &export.seed.to_string(), "--faults", export.faults])
        .args(["--latency-ms", &export.latency_ms.to_string()])
        .args(["--partitions", &export.partitions.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}

/// The customers and accounts that the bank has, as COPY commands.
pub(super) async fn accounts(binary: &Path, export: Export) -> anyhow::Result<String> {
    let done = simulate(binary, export).arg("--print-accounts").output().await?;
    String::from_utf8(done.stdout).context("the accounts are no text")
}

impl Core {
    pub(super) async fn start(binary: &Path, export: Export) -> anyhow::Result<Self> {
        let mut child =
            simulate(binary, export).spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        let stdout = child.stdout.take().context("the simulator's output was piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await?;
        let ready = serde_json::from_str(&line).context("the simulator did not say where it listens")?;
        Ok(Self { ready, _child: child })
    }

    pub(super) fn url(&self) -> &str {
        &self.ready.url
    }

    pub(super) fn token(&self) -> &str {
        &self.ready.token
    }

    fn address(&self) -> anyhow::Result<&str> {
        self.ready.url.strip_prefix("http://").context("the simulator speaks plain HTTP")
    }

    pub(super) async fn told(&self) -> anyhow::Result<Told> {
        let text = http::get(self.address()?, "/truth", self.token()).await?;
        serde_json::from_str(&text).context("the simulator's truth cannot be read")
    }

    /// Gives every record to `each`, as a line of JSON.
    pub(super) async fn rows(&self, each: impl FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        http::lines(self.address()?, "/truth/rows", self.token(), each).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_beyond_the_walks_is_asked_again() {
        let page = |asked| PageCalls { asked };
        let asked = Stats { pages: vec![page(2), page(1), page(4)] };
        let told = Told { count: 0, good: 0, bad: 0, repeated: 0, asked };
        assert_eq!((told.pages(), told.again(1), told.again(2)), (3, 4, 2));
    }
}
