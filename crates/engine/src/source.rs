//! The contract of a source.
//!
//! A source turns a [`Position`] into a [`Page`]. What it must promise:
//!
//! - **An error never looks like the end.** [`Position::End`] is returned only where the source's answer says
//!   so. A missing cursor key, an empty body, HTML with status 200, a truncated body are [`SourceError`]s.
//! - **Bytes are bytes.** Each record is the slice that was received, not a re-serialised form. One record that
//!   cannot be parsed does not spoil its page: it is handed on as it came, and the sink refuses it alone.
//! - **The same position gives the same page**, as far as the vendor keeps that promise; nothing is remembered
//!   between calls that a new process would not have.
//! - **It is polite.** Retries, waiting, pacing and limits of size and time happen below this contract; an error
//!   that arrives here was not cured by them.
//! - **No secret** appears in an error, a cursor or a record.
//!
//! What it gets: one call at a time per partition; never a position that it did not give out itself (apart from
//! [`Position::Beginning`]); never [`Position::End`]. The engine refuses a cursor that stands still or comes
//! again within the segment.

use async_trait::async_trait;
use bytes::Bytes;
use db::Timestamp;

use crate::Position;

/// A part of a source that is fetched on its own, with its own cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSpec {
    /// Names the partition within the job, for people and for the source itself (a group id, a range).
    pub key: String,
    /// How many records the source counts in it, where it says so. If it ends with fewer, the job is no clean one.
    pub expected: Option<i64>,
    /// Why nothing of it is fetched, where the source or the job's filter leaves it out: listed, so that nobody takes it
    /// for moved.
    pub left_out: Option<String>,
    /// Whether it looks once more at what other partitions hold, for records that came late. It is fetched when all the
    /// others have ended and, unless the job stages everything first, are processed; what it imports counts against
    /// what they lack of the source's count, and its own count is not the job's.
    pub closing: bool,
}

/// The largest count that is believed: sums over partitions stay within 64 bits.
const COUNT_MAX: i64 = 1 << 50;

impl PartitionSpec {
    /// The count that was told beforehand, if it can be one.
    pub(crate) fn counted(&self) -> Option<i64> {
        self.expected.filter(|count| (0..=COUNT_MAX).contains(count))
    }
}

/// One answer of a source.
#[derive(Debug, Clone)]
pub struct Page {
    /// The raw records, in the order received.
    pub records: Vec<Bytes>,
    /// Where the next page begins, or the end. Never [`Position::Beginning`].
    pub next: Position,
    /// How many records the source counts in the whole partition, where the page says so. The last one told stands;
    /// what cannot be a count is passed over.
    pub total: Option<i64>,
    /// Requests that had to be repeated to get this page.
    pub retries: u32,
}

impl Page {
    /// The count that the page tells, if it can be one: never less than the page holds, and nothing at all only where
    /// there is nothing. `before` are the pages of the partition before this one.
    pub(crate) fn counted(&self, before: i64) -> Option<i64> {
        let held = i64::try_from(self.records.len()).unwrap_or(i64::MAX);
        let least = if before == 0 { held } else { held.max(1) };
        self.total.filter(|count| (least..=COUNT_MAX).contains(count))
    }
}

/// What the engine needs to know of a source beforehand.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The source's name in logs and metrics, for example `bitly`.
    pub name: &'static str,
    /// How many partitions may be fetched side by side.
    pub parallel_partitions: usize,
    /// Whether an empty page that repeats its own cursor is this source's way to say "the end".
    pub stalled_is_end: bool,
    /// Whether the next page is asked for while the one before is being committed. A crash then costs two requests
    /// instead of one, which a source that counts them by the month does not give away.
    pub prefetch: bool,
    /// Whether the source's cursor may repeat while the rows move on (a stateful session).
    pub stateful_cursor: bool,
}

/// What went wrong at the source, by what the engine does about it.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The credentials are refused: the job becomes `awaiting_token`.
    #[error("the source refuses the credentials: {0}")]
    Unauthorized(String),
    /// The source asks to come back later (a quota): the job becomes `waiting`.
    #[error("the source asks to wait until {until}: {reason}")]
    WaitUntil {
        /// When to go on.
        until: Timestamp,
        /// In the source's words.
        reason: String,
    },
    /// The cursor is no longer accepted: the segment is fetched again from its start and compared.
    #[error("the source no longer accepts the cursor: {0}")]
    CursorExpired(String),
    /// The answer is not what the source's profile declares: the job fails, its checkpoint stays.
    #[error("unexpected answer: {0}")]
    Malformed(String),
    /// The source could not be reached or kept failing, after all retries: the job fails, its checkpoint stays.
    #[error("the source does not answer: {0}")]
    Unavailable(String),
    /// The source refuses the request itself (a wrong group, a plan without API): the job fails.
    #[error("{0}")]
    Refused(String),
}

/// See the [module documentation](self).
#[async_trait]
pub trait Source: Send + Sync {
    /// What the engine needs to know beforehand.
    fn profile(&self) -> &Profile;

    /// The partitions of the job, always in the same order. Asked once, when the job first runs.
    async fn partitions(&self) -> Result<Vec<PartitionSpec>, SourceError>;

    /// The page at this position.
    async fn page(&self, partition: &PartitionSpec, at: &Position) -> Result<Page, SourceError>;
}
