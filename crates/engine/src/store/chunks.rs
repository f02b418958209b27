//! Chunks: claiming, loading and settling them.

use db::{Conn, Result};

use super::{postgres::chunks as postgres, sqlite::chunks as sqlite};
use crate::{Counts, JobId, Outcome};

/// A chunk's key and extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct Chunk {
    /// Index of the partition.
    pub part: i32,
    /// Number of the segment.
    pub segment: i32,
    /// The ordinal of its first record, which names it.
    pub first_ordinal: i32,
    /// How many records it holds.
    pub records: i32,
    /// How often it was begun, this time included.
    pub attempts: i32,
}

/// What became of a record that did not simply arrive, for quarantine and error log.
#[derive(Debug, Clone)]
pub struct Exception {
    /// Ordinal within the segment.
    pub ordinal: i32,
    /// The source's id, if known.
    pub source_id: Option<String>,
    /// What people know it by.
    pub label: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// Stable reason code.
    pub code: String,
    /// Detail for people.
    pub detail: String,
    /// The record's bytes, for quarantine.
    pub raw: bytes::Bytes,
}

/// Everything that settles a chunk.
#[derive(Debug)]
pub struct Settlement {
    /// Counters over its records.
    pub counts: Counts,
    /// The manifest block.
    pub block: Vec<u8>,
    /// Failed records and those to note.
    pub exceptions: Vec<Exception>,
    /// Times the transaction was run again.
    pub retries: i32,
    /// Time spent, in microseconds.
    pub process_micros: i64,
    /// At most this many notes are kept for the job.
    pub notes_max: i64,
}

/// A chunk's place: partition, segment, first ordinal.
pub type Key = (i32, i32, i32);

impl Chunk {
    /// Its place.
    pub fn key(&self) -> Key {
        (self.part, self.segment, self.first_ordinal)
    }
}

/// Whether [`attempt`] would find a chunk if nobody else held one; a read, so that idle workers write nothing.
pub async fn any_due(conn: Conn<'_>, job: JobId, serial: bool) -> Result<bool> {
    db::dispatch!(conn, any_due(job.0, serial))
}

/// Picks the lowest ready chunk that is not among `busy` and counts an attempt at it.
///
/// With `serial`, only the job's very lowest chunk is picked, and none while a lower partition is still being
/// fetched. Without it, chunks that somebody else is holding are passed over; `busy` are those that this process has
/// picked and may not hold yet.
pub async fn attempt(conn: Conn<'_>, job: JobId, serial: bool, busy: &[Key]) -> Result<Option<Chunk>> {
    db::dispatch!(conn, attempt(job.0, serial, busy))
}

/// Claims the chunk for this transaction; `false` if it is settled, if somebody holds it (or, with `serial`, the
/// turn), or if the job does not run any more: no chunk begins after a pause.
pub async fn claim(conn: Conn<'_>, job: JobId, chunk: &Chunk, serial: bool) -> Result<bool> {
    db::dispatch!(conn, claim(job.0, chunk, serial))
}

/// Takes the job's turn for this transaction; `false` if somebody has it.
pub async fn take_turn(conn: Conn<'_>, job: JobId) -> Result<bool> {
    db::dispatch!(conn, take_turn(job.0))
}

/// Holds every chunk of the job that is not settled, waiting for the transactions that hold one now.
pub async fn hold_all(conn: Conn<'_>, job: JobId) -> Result<()> {
    db::dispatch!(conn, hold_all(job.0))
}

/// Takes an attempt back that was not one: the chunk turned out to be held by somebody else, or the process stops.
/// A chunk that is held keeps the attempt: waiting for its holder would cost more than one attempt too many.
pub async fn forgive(conn: Conn<'_>, job: JobId, chunk: &Chunk) -> Result<()> {
    db::dispatch!(conn, forgive(job.0, chunk))
}

/// Settles a claimed chunk; `false` if it was not ready any more.
pub async fn settle(conn: Conn<'_>, job: JobId, chunk: &Chunk, settlement: &Settlement) -> Result<bool> {
    db::dispatch!(conn, settle(job.0, chunk, settlement))
}

/// Whether the chunk is settled, waiting for a commit that is still in flight.
pub async fn settled_after_doubt(conn: Conn<'_>, job: JobId, chunk: &Chunk) -> Result<bool> {
    db::dispatch!(conn, settled_after_doubt(job.0, chunk))
}

/// Splits a ready chunk in two, so that a record which kills its worker is cornered. `false` if it changed meanwhile.
pub async fn split(conn: Conn<'_>, job: JobId, chunk: &Chunk) -> Result<bool> {
    db::dispatch!(conn, split(job.0, chunk))
}

/// Chunks after `after` in order, settled or not, at most `limit`; for checking before writing.
pub async fn in_order_after(
    conn: Conn<'_>,
    job: JobId,
    after: Option<(i32, i32, i32)>,
    limit: i64,
) -> Result<Vec<Chunk>> {
    db::dispatch!(conn, in_order_after(job.0, after.unwrap_or((-1, -1, -1)), limit))
}

/// Whether the partition has chunks that are not settled.
pub async fn any_ready(conn: Conn<'_>, job: JobId, part: i32) -> Result<bool> {
    db::dispatch!(conn, any_ready(job.0, part))
}

/// Exceptions split by what they need: rows for the error log and rows for quarantine, as JSON without the bytes.
pub(super) fn rows_json<'e>(exceptions: impl Iterator<Item = &'e Exception>) -> String {
    let rows: Vec<_> = exceptions
        .map(|e| (e.ordinal, &e.source_id, &e.label, e.outcome.as_str(), &e.code, &e.detail))
        .collect();
    serde_json::to_string(&rows).expect("texts and numbers are JSON")
}
