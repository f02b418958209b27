//! Partitions: the checkpoint of each, and the lease that fences its fetcher.

use std::time::Duration;

use db::{Conn, Id, Result, Timestamp};

use super::{postgres::partitions as postgres, sqlite::partitions as sqlite};
use crate::position::PositionError;
use crate::{JobId, PartitionSpec, Position};

/// Why a partition that comes after all others is broken.
pub(super) const OTHERS_BROKEN: &str = "it comes after all the others, and one of them is broken";

/// The durable position of a partition, as stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Checkpoint {
    /// Index of the partition in the job.
    pub part: i32,
    /// Its name for the source.
    pub key: String,
    /// How many records the source counts in it, where it says so.
    pub expected: Option<i64>,
    /// Whether it is fetched when all the others have ended.
    pub closing: bool,
    /// Raised whenever a fetcher takes over.
    pub epoch: i64,
    /// Number of the open segment.
    pub segment: i32,
    /// Stored form of where that segment began.
    pub anchor: String,
    /// Stored form of where the next page begins.
    pub position: String,
    /// Records staged in the open segment.
    pub staged: i32,
    /// Of these, how many are in chunks.
    pub chunked: i32,
    /// Pages fetched so far.
    pub pages: i64,
    /// The current run.
    pub run: i32,
    /// Records of the current run.
    pub run_records: i64,
    /// When the current run began, by the database's clock.
    pub run_started_at: Option<Timestamp>,
}

impl Checkpoint {
    /// The partition as its source named it.
    pub fn spec(&self) -> PartitionSpec {
        PartitionSpec {
            key: self.key.clone(),
            expected: self.expected,
            left_out: None,
            closing: self.closing,
        }
    }

    /// Where the next page begins.
    pub fn position(&self) -> Result<Position, PositionError> {
        Position::from_stored(&self.position)
    }
}

/// Stores the partitions of a job, once.
pub async fn insert(conn: Conn<'_>, id: JobId, specs: &[PartitionSpec]) -> Result<()> {
    let row = |(part, spec): (usize, &PartitionSpec)| {
        let status = if spec.left_out.is_some() { "left_out" } else { "fetching" };
        (part, spec.key.clone(), spec.counted(), status, spec.left_out.clone(), spec.closing)
    };
    let rows: Vec<_> = specs.iter().enumerate().map(row).collect();
    let rows = serde_json::to_string(&rows).expect("numbers and texts are JSON");
    db::dispatch!(conn, insert(id.0, &rows))
}

/// Takes the lease of the lowest partition that has not ended and whose lease is free; raises its epoch. One that closes
/// the job is none until the others have ended and, where records are processed while others are fetched, no chunk is left.
///
/// With `one_by_one`, only the very lowest partition that has not ended is looked at. With `alone`, the caller is the
/// only runner there can be (it holds the runner lock), so a lease that still runs belongs to a dead process. `busy`
/// are the partitions that other fetchers of this process hold; a lease of this process on any other is a leftover.
pub async fn take(
    conn: Conn<'_>,
    id: JobId,
    holder: &str,
    lease_seconds: i32,
    one_by_one: bool,
    alone: bool,
    busy: &[i32],
) -> Result<Option<Checkpoint>> {
    db::dispatch!(conn, take(id.0, holder, lease_seconds, one_by_one, alone, busy))
}

/// Whether [`take`] would find a partition; a read, so that idle fetchers write nothing.
pub async fn any_free(
    conn: Conn<'_>,
    id: JobId,
    holder: &str,
    one_by_one: bool,
    alone: bool,
    busy: &[i32],
) -> Result<bool> {
    db::dispatch!(conn, any_free(id.0, holder, one_by_one, alone, busy))
}

/// Prolongs the lease if the epoch is still the holder's.
pub async fn renew(conn: Conn<'_>, id: JobId, part: i32, epoch: i64, lease_seconds: i32) -> Result<bool> {
    db::dispatch!(conn, renew(id.0, part, epoch, lease_seconds))
}

/// Gives the lease back if the epoch is still the holder's.
pub async fn release(conn: Conn<'_>, id: JobId, part: i32, epoch: i64) -> Result<()> {
    db::dispatch!(conn, release(id.0, part, epoch))
}

/// Whether partitions have not ended and nobody has held the lease of any of them for `grace`: whoever takes over a
/// partition waits for its lease to end, and needs a moment then.
pub async fn any_unheld(conn: Conn<'_>, id: JobId, grace: Duration) -> Result<bool> {
    db::dispatch!(conn, any_unheld(id.0, grace))
}

/// Fences off the dead fetchers of partitions with records in no chunk: raises their epochs and returns partition and
/// new epoch of each.
pub async fn fence(conn: Conn<'_>, id: JobId, alone: bool) -> Result<Vec<(i32, i64)>> {
    db::dispatch!(conn, fence(id.0, alone))
}

/// A partition as people see it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow, serde::Serialize)]
pub struct State {
    /// Its name for the source.
    pub key: String,
    /// `fetching`, `ended`, `broken` (given up until the job is resumed) or `left_out`.
    pub status: String,
    /// Why it is broken or left out.
    pub reason: Option<String>,
    /// Records fetched so far.
    pub records: i64,
    /// How many the source counts in it, where it says so.
    pub expected: Option<i64>,
}

/// The partitions of a job, in order.
pub async fn list(conn: Conn<'_>, id: JobId) -> Result<Vec<State>> {
    db::dispatch!(conn, list(id.0))
}

/// Gives a partition up until the job is resumed, if the epoch is still the holder's; the others go on. Those that come
/// after all others are given up with it.
pub async fn break_off(conn: Conn<'_>, id: JobId, part: i32, epoch: i64, reason: &str) -> Result<()> {
    db::dispatch!(conn, break_off(id.0, part, epoch, reason))
}

/// Takes up again what was given up.
pub async fn mend(conn: Conn<'_>, id: JobId) -> Result<()> {
    db::dispatch!(conn, mend(id.0))
}

/// What tells whether a page commit happened: each commit raises the pages, closes the segment, or makes chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct Progress {
    /// The epoch of the latest fetcher.
    pub epoch: i64,
    /// Number of the open segment.
    pub segment: i32,
    /// Pages fetched so far.
    pub pages: i64,
    /// Records of the open segment that are in chunks.
    pub chunked: i32,
}

/// How far a partition is, waiting for a commit that is still in flight.
pub async fn progress_after_doubt(conn: Conn<'_>, id: JobId, part: i32) -> Result<Progress> {
    db::dispatch!(conn, progress_after_doubt(id.0, part))
}

/// Begins a run: raises the run's number and starts its clock, if the epoch is still the holder's.
pub async fn begin_run(conn: Conn<'_>, id: JobId, part: i32, epoch: i64, run: i32) -> Result<bool> {
    let id: Id = id.0;
    db::dispatch!(conn, begin_run(id, part, epoch, run))
}
