//! A migration's folder as it is kept with its job.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Problem;

/// The file of keys.
pub const PIPELINE: &str = "pipeline.toml";
/// From staged records to rows of the target.
pub const MAP: &str = "map.sql";
/// From rows of the target back to what the source sent.
pub const PROOF: &str = "proof.sql";
/// The folder of queries that must return no row.
pub const CHECKS: &str = "checks";

/// A file larger than this is no declaration.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// More checks than anybody writes.
const CHECKS_MAX: usize = 200;

/// The texts of a migration, by path within the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Folder {
    files: BTreeMap<String, String>,
}

impl Folder {
    /// Reads a folder.
    ///
    /// # Errors
    /// A problem for each file that is missing, too large or not UTF-8.
    pub fn load(path: &Path) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut files = BTreeMap::new();
        for name in [PIPELINE, MAP, PROOF] {
            match read(&path.join(name)) {
                Ok(text) => drop(files.insert(name.to_owned(), text)),
                Err(why) => problems.push(Problem::of(name, None, format!("cannot be read: {why}"))),
            }
        }
        match checks(path) {
            Ok(found) => files.extend(found),
            Err(problem) => problems.push(problem),
        }
        if problems.is_empty() { Ok(Self { files }) } else { Err(problems) }
    }

    /// From texts by name, for tests and for what is stored with a job.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self { files: files.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect() }
    }

    /// The text of a file; empty if it is not there.
    pub fn text(&self, name: &str) -> &str {
        self.files.get(name).map_or("", String::as_str)
    }

    /// The names of its files, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Whether it has this file.
    pub fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// The checks, in the order of their names.
    pub fn checks(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(|(name, _)| name.starts_with(CHECKS))
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// SHA-256 over names and texts, in hex: what a changed folder is noticed by.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for (name, text) in &self.files {
            hash.update((name.len() as u64).to_be_bytes());
            hash.update(name);
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn checks(path: &Path) -> Result<Vec<(String, String)>, Problem> {
    let folder = path.join(CHECKS);
    let fault = |why: &dyn std::fmt::Display| Problem::of(CHECKS, None, format!("cannot be read: {why}"));
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fault(&error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| fault(&error))?.path();
        if path.extension().is_none_or(|extension| extension != "sql") {
            continue;
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = read(&path).map_err(|why| {
            Problem::of(&format!("{CHECKS}/{name}"), None, format!("cannot be read: {why}"))
        })?;
        found.push((format!("{CHECKS}/{name}"), text));
        if found.len() > CHECKS_MAX {
            return Err(fault(&format!("there are more than {CHECKS_MAX} checks")));
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > FILE_BYTES_MAX {
        return Err(format!("it has {size} bytes, more than {FILE_BYTES_MAX}"));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes)
        .map_err(|error| format!("it is not UTF-8 behind byte {}", error.utf8_error().valid_up_to()))
}
