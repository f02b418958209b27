//! Reading what happened: segments, notes, quarantine, manifest blocks.

use db::{Conn, Result, Timestamp};
use serde::Serialize;

use super::{postgres::history as postgres, sqlite::history as sqlite};
use crate::JobId;

/// One line of a job's history.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
#[allow(missing_docs)] // Outcomes as in [`crate::Counts`]; times in microseconds.
pub struct SegmentLine {
    pub part: i32,
    pub segment: i32,
    pub run: i32,
    pub status: String,
    pub pages: i32,
    pub records: i32,
    pub bytes: i64,
    pub imported: i64,
    pub updated: i64,
    pub unchanged: i64,
    pub skipped: i64,
    pub filtered: i64,
    pub duplicate_in_source: i64,
    pub failed: i64,
    pub targets: i64,
    pub retries: i64,
    pub cleaned: i32,
    pub fetch_micros: i64,
    pub process_micros: i64,
    pub started_at: Timestamp,
    pub closed_at: Option<Timestamp>,
    pub cleaned_at: Option<Timestamp>,
}

/// One entry of the error log.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
#[allow(missing_docs)] // As in [`super::chunks::Exception`].
pub struct Note {
    pub part: i32,
    pub segment: i32,
    pub ordinal: i32,
    pub source_id: Option<String>,
    pub label: Option<String>,
    pub outcome: String,
    pub code: String,
    pub detail: String,
}

/// One failed record, whole.
#[derive(Debug, Clone, sqlx::FromRow)]
#[allow(missing_docs)] // As in [`super::chunks::Exception`].
pub struct Quarantined {
    pub part: i32,
    pub segment: i32,
    pub ordinal: i32,
    pub source_id: Option<String>,
    pub label: Option<String>,
    pub code: String,
    pub detail: String,
    pub raw: Vec<u8>,
    pub quarantined_at: Timestamp,
}

/// One manifest block with its place.
#[derive(Debug, Clone, sqlx::FromRow)]
#[allow(missing_docs)]
pub struct Block {
    pub part: i32,
    pub segment: i32,
    pub first_ordinal: i32,
    pub block: Vec<u8>,
}

/// The job's history, a line for each segment in order.
pub async fn segments(conn: Conn<'_>, job: JobId) -> Result<Vec<SegmentLine>> {
    db::dispatch!(conn, segments(job.0))
}

/// The job's error log: first what concerns whole partitions (segment and ordinal are -1), then in order of place.
pub async fn notes(conn: Conn<'_>, job: JobId, limit: i64) -> Result<Vec<Note>> {
    db::dispatch!(conn, notes(job.0, limit))
}

/// Failed records in order of place, after `after` (partition, segment, ordinal).
pub async fn quarantined(
    conn: Conn<'_>,
    job: JobId,
    after: (i32, i32, i32),
    limit: i64,
) -> Result<Vec<Quarantined>> {
    db::dispatch!(conn, quarantined(job.0, after, limit))
}

/// Manifest blocks in order, after `after` (partition, segment, first ordinal).
pub async fn blocks(conn: Conn<'_>, job: JobId, after: (i32, i32, i32), limit: i64) -> Result<Vec<Block>> {
    db::dispatch!(conn, blocks(job.0, after, limit))
}

/// The commonest reason codes of failed records, and how many have each.
pub async fn reason_codes(conn: Conn<'_>, job: JobId, limit: i64) -> Result<Vec<(String, i64)>> {
    db::dispatch!(conn, reason_codes(job.0, limit))
}
