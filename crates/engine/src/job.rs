//! Jobs, their states, and the moves between them.

use std::fmt;

use db::{Id, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Counts;

/// The id of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub Id);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for JobId {
    type Err = db::IdError;

    fn from_str(text: &str) -> Result<Self, db::IdError> {
        text.parse().map(Self)
    }
}

/// The state of a job; `docs/states.md` draws the moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Made, and waiting for its lane to be free.
    Queued,
    /// Being fetched or processed.
    Running,
    /// Waiting until a time that the source set; goes on by itself.
    Waiting,
    /// Stopped by a person; goes on when asked.
    Paused,
    /// Pages are left to fetch and nobody has credentials; goes on when they are given.
    AwaitingToken,
    /// Every record is accounted for.
    Completed,
    /// Stopped by an error; goes on, from its checkpoint, when asked.
    Failed,
    /// Ended by a person.
    Cancelled,
}

impl Status {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Paused,
        Self::AwaitingToken,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The word, as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::AwaitingToken => "awaiting_token",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the stored word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Whether the job is over for good.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }

    /// Whether a job in this state goes to `to` when a person or the engine asks for it.
    pub fn may_become(self, to: Self) -> bool {
        use Status::{AwaitingToken, Cancelled, Completed, Failed, Paused, Queued, Running, Waiting};
        match (self, to) {
            (Queued, Running) => true,
            (Running, Waiting | Paused | AwaitingToken | Failed | Completed) => true,
            // Back to the queue: the lane may have been taken meanwhile.
            (Waiting | Paused | AwaitingToken | Failed, Queued) => true,
            (Queued | Waiting, Paused) => true,
            (from, Cancelled) => !from.is_final(),
            _ => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a job treats its two stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Chunks are processed while later pages are fetched.
    Stream,
    /// Everything is staged and checked first; it is written only if nothing collides.
    CheckFirst,
    /// Everything is staged and checked; nothing is written.
    DryRun,
}

impl Mode {
    /// The word, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::CheckFirst => "check_first",
            Self::DryRun => "dry_run",
        }
    }

    /// Reads the stored word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Stream, Self::CheckFirst, Self::DryRun].into_iter().find(|mode| mode.as_str() == text)
    }
}

/// What is needed to make a job.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// The name of its [`Kind`](crate::Kind).
    pub kind: String,
    /// Jobs of one lane run one after another (an import's target domain).
    pub lane: String,
    /// How it treats its stages.
    pub mode: Mode,
    /// The kind's own parameters, as JSON. No secrets.
    pub params: String,
    /// The id of the request that started it, for its log lines.
    pub request_id: Option<String>,
}

/// A job as it stands.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The name of its kind.
    pub kind: String,
    /// Its lane.
    pub lane: String,
    /// How it treats its stages.
    pub mode: Mode,
    /// The kind's own parameters, as JSON.
    pub params: String,
    /// Its state.
    pub status: Status,
    /// Why it waits or failed.
    pub reason: Option<String>,
    /// Until when it waits.
    pub waiting_until: Option<Timestamp>,
    /// The id of the request that started it.
    pub request_id: Option<String>,
    /// Number of the latest run, from 1; 0 before the first.
    pub run: i32,
    /// When it was made, first ran, last made progress and ended.
    pub created_at: Timestamp,
    /// When it first ran.
    pub started_at: Option<Timestamp>,
    /// When a page or a chunk of it last committed.
    pub last_progress_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Records fetched and staged.
    pub fetched: i64,
    /// Pages fetched.
    pub pages: i64,
    /// Requests repeated.
    pub retries: i64,
    /// How many records the source counts in all partitions together, once it has told that of each.
    pub expected: Option<i64>,
    /// Partitions that ended with fewer records than the source counts in them.
    pub short_partitions: i64,
    /// What became of the records so far.
    pub counts: Counts,
}

impl Job {
    /// `clean` or `partial` for a completed job: some records failed, or the source counts more than came.
    pub fn outcome(&self) -> Option<&'static str> {
        let is_clean = self.counts.failed == 0 && self.short_partitions == 0;
        (self.status == Status::Completed).then_some(if is_clean { "clean" } else { "partial" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_states_are_left_by_no_move() {
        for from in Status::ALL.into_iter().filter(|status| status.is_final()) {
            for to in Status::ALL {
                assert!(!from.may_become(to), "{from} -> {to}");
            }
        }
    }

    #[test]
    fn every_state_is_read_back() {
        for status in Status::ALL {
            assert_eq!(Status::parse(status.as_str()), Some(status));
        }
    }
}
