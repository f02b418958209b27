//! Corrections: what was counted with one outcome has another now, because records were tried again after their job was
//! through.
//!
//! As in a ledger, nothing that was written is changed. A correction is a settled chunk that holds no records and whose
//! counts come to nothing (`imported + 1`, `failed - 1`), in a segment of its own, in a partition that has ended. So the
//! lines of the history stay as they were, the sums over them tell what stands now, and fetched = sum of outcomes holds in each
//! segment and for the job.

use db::{Conn, Result};

use super::chunks::Key;
use super::{postgres::corrections as postgres, sqlite::corrections as sqlite};
use crate::{Counts, JobId};

/// Makes a line of the history for corrections, and before the first the partition `key` that holds these lines. Gives
/// partition and segment.
pub async fn begin(conn: Conn<'_>, job: JobId, key: &str) -> Result<(i32, i32)> {
    db::dispatch!(conn, begin(job.0, key))
}

/// Adds a correction at a place of a line that [`begin`] gave, with its manifest block. The schema refuses counts that do not
/// come to nothing.
pub async fn add(
    conn: Conn<'_>,
    job: JobId,
    key: Key,
    counts: &Counts,
    process_micros: i64,
    block: Option<&[u8]>,
) -> Result<()> {
    db::dispatch!(conn, add(job.0, key, counts, process_micros, block))
}

/// Whether there is a correction at a place.
pub async fn has(conn: Conn<'_>, job: JobId, key: Key) -> Result<bool> {
    db::dispatch!(conn, has(job.0, key))
}
