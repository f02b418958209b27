//! What became of a record, and how outcomes are counted.

use std::borrow::Cow;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What became of a record. Every fetched record has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is new in the target.
    Imported,
    /// It was there, had changed at the source, and was written again.
    Updated,
    /// It was there already, with the same content.
    Unchanged,
    /// It was left out because of what the target holds, by the job's conflict rule.
    Skipped,
    /// It was left out by a rule of the job or because the target's owner removed it.
    Filtered,
    /// The source gave it before in this job.
    DuplicateInSource,
    /// It could not be written; it is in quarantine with its reason.
    Failed,
}

impl Outcome {
    /// The word of the outcome, as in logs and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Imported => "imported",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
            Self::Skipped => "skipped",
            Self::Filtered => "filtered",
            Self::DuplicateInSource => "duplicate_in_source",
            Self::Failed => "failed",
        }
    }
}

/// Why a record was not simply imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// A stable word for programs, for example `missing_destination`.
    pub code: Cow<'static, str>,
    /// This case, for people: the place and the value.
    pub detail: String,
}

impl Reason {
    /// A reason with its stable code and its detail for people.
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code), detail: detail.into() }
    }
}

/// What a sink says of one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The source's immutable id, where the record has a readable one.
    pub source_id: Option<String>,
    /// What people know the record by (a slug, a reference), for the error log.
    pub label: Option<String>,
    /// The deterministic key of the record in the target.
    pub reference: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// Why; required for `Skipped`, `Filtered` and `Failed`.
    pub reason: Option<Reason>,
    /// Digest of what stands in the target for it, zero if nothing does.
    pub digest: [u8; 16],
    /// How many things of the target it stands for (slugs of a link, rows of a booking).
    pub targets: u32,
}

impl Written {
    /// A record that failed before anything of it was written.
    pub fn failed(source_id: Option<String>, label: Option<String>, reason: Reason) -> Self {
        Self {
            source_id,
            label,
            reference: None,
            outcome: Outcome::Failed,
            reason: Some(reason),
            digest: [0; 16],
            targets: 0,
        }
    }
}

/// Counters over records; `targets` counts what they stand for in the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // Each field is the outcome of the same name.
pub struct Counts {
    pub imported: i64,
    pub updated: i64,
    pub unchanged: i64,
    pub skipped: i64,
    pub filtered: i64,
    pub duplicate_in_source: i64,
    pub failed: i64,
    pub targets: i64,
}

impl Counts {
    /// Counts one record.
    pub fn add(&mut self, outcome: Outcome, targets: u32) {
        *match outcome {
            Outcome::Imported => &mut self.imported,
            Outcome::Updated => &mut self.updated,
            Outcome::Unchanged => &mut self.unchanged,
            Outcome::Skipped => &mut self.skipped,
            Outcome::Filtered => &mut self.filtered,
            Outcome::DuplicateInSource => &mut self.duplicate_in_source,
            Outcome::Failed => &mut self.failed,
        } += 1;
        self.targets += i64::from(targets);
    }

    /// All records counted, whatever became of them.
    pub fn records(&self) -> i64 {
        self.imported
            + self.updated
            + self.unchanged
            + self.skipped
            + self.filtered
            + self.duplicate_in_source
            + self.failed
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.imported += other.imported;
        self.updated += other.updated;
        self.unchanged += other.unchanged;
        self.skipped += other.skipped;
        self.filtered += other.filtered;
        self.duplicate_in_source += other.duplicate_in_source;
        self.failed += other.failed;
        self.targets += other.targets;
    }
}
