//! A simulated account, served by the real binary in a process of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::http;
use crate::links::compare::TruthRow;

/// How large an account is, and how slowly it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Account {
    pub(crate) links: u64,
    pub(crate) latency_ms: u64,
    pub(crate) seed: u64,
    /// The lease with which it is imported.
    pub(crate) lease_seconds: u64,
}

impl Account {
    /// The pages of a whole walk, in pages of 100 links.
    pub(crate) fn pages(&self) -> u64 {
        self.links.div_ceil(100)
    }
}

/// The line a simulator prints when it listens.
#[derive(Debug, Deserialize)]
struct Ready {
    url: String,
    token: String,
    domain: String,
}

/// A running simulator; dropping it ends it.
pub(crate) struct Simulator {
    ready: Ready,
    _child: Child,
}

#[derive(Deserialize)]
struct Stats {
    lists: Vec<ListCall>,
}

#[derive(Deserialize)]
struct ListCall {
    cursor: String,
}

/// How often each page behind a cursor was asked for. The first page has none and is not told from the samples that are
/// taken before an import starts.
pub(crate) struct Asked(BTreeMap<String, u64>);

impl Asked {
    /// Pages asked for at least once.
    pub(crate) fn pages(&self) -> u64 {
        self.0.len() as u64
    }

    /// Requests beyond one for each page in each of `walks` whole walks.
    pub(crate) fn again(&self, walks: u64) -> u64 {
        self.0.values().map(|times| times.saturating_sub(walks)).sum()
    }
}

impl Simulator {
    pub(crate) async fn start(binary: &Path, account: Account) -> anyhow::Result<Self> {
        let mut child = Command::new(binary)
            .args(["simulate", "bitly", "--count", &account.links.to_string()])
            .args(["--seed", &account.seed.to_string(), "--latency-ms", &account.latency_ms.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let stdout = child.stdout.take().context("the simulator's output was piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await?;
        let ready = serde_json::from_str(&line).context("the simulator did not say where it listens")?;
        Ok(Self { ready, _child: child })
    }

    /// The API's base URL.
    pub(crate) fn url(&self) -> &str {
        &self.ready.url
    }

    pub(crate) fn token(&self) -> &str {
        &self.ready.token
    }

    pub(crate) fn domain(&self) -> &str {
        &self.ready.domain
    }

    async fn get(&self, path: &str) -> anyhow::Result<String> {
        let address = self.ready.url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        http::get(address.context("the simulator speaks plain HTTP")?, path, &self.ready.token).await
    }

    /// Every slug of the account, and what is true of it.
    pub(crate) async fn truth(&self) -> anyhow::Result<Vec<TruthRow>> {
        let lines = self.get("/__simulator/truth").await?;
        lines
            .lines()
            .map(|line| serde_json::from_str(line).context("a line of the truth cannot be read"))
            .collect()
    }

    /// What was asked of it so far.
    pub(crate) async fn asked(&self) -> anyhow::Result<Asked> {
        let stats: Stats = serde_json::from_str(&self.get("/__simulator/stats").await?)?;
        let mut asked = BTreeMap::new();
        for call in stats.lists.into_iter().filter(|call| !call.cursor.is_empty()) {
            *asked.entry(call.cursor).or_default() += 1;
        }
        Ok(Asked(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_beyond_the_walks_is_asked_again() {
        let asked = Asked(BTreeMap::from([("a".into(), 2), ("b".into(), 1), ("c".into(), 4)]));
        assert_eq!((asked.pages(), asked.again(1), asked.again(2)), (3, 4, 2));
    }
}
