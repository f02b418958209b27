//! The job-runner lock of a SQLite database: one process at a time runs jobs.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use db::Database;
use serde::{Deserialize, Serialize};

/// Who holds the lock, for the message to whoever comes second.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Holder {
    /// Its process id.
    pub(crate) pid: u32,
    /// What it is doing: `serve`, `import`, …
    pub(crate) doing: String,
    /// Where its API answers, if it has one.
    pub(crate) url: Option<String>,
}

/// The held lock; it ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct RunnerLock(#[allow(dead_code)] Option<File>);

/// What came of trying to take the lock.
pub(crate) enum Taken {
    /// This process may run jobs.
    Ours(RunnerLock),
    /// Another one does.
    Theirs(Option<Holder>),
}

fn file_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Takes the runner lock if nobody has it. On Postgres there is none to take: any number of processes run jobs.
pub(crate) fn take(database: &Database, doing: &str, url: Option<&str>) -> anyhow::Result<Taken> {
    let Some(path) = database.address().file() else { return Ok(Taken::Ours(RunnerLock(None))) };
    let path = file_of(path);
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .open(&path)
        .with_context(|| format!("cannot open the lock file {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            return Ok(Taken::Theirs(serde_json::from_str(&text).ok()));
        }
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    let holder = Holder { pid: std::process::id(), doing: doing.to_owned(), url: url.map(str::to_owned) };
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    serde_json::to_writer(&mut file, &holder)?;
    file.flush()?;
    Ok(Taken::Ours(RunnerLock(Some(file))))
}

impl Holder {
    /// A few words about the holder.
    pub(crate) fn describe(&self) -> String {
        match &self.url {
            Some(url) => format!("`crossdock {}` (process {}) at {url}", self.doing, self.pid),
            None => format!("`crossdock {}` (process {})", self.doing, self.pid),
        }
    }
}
