//! The page transaction: raw records, fingerprints, cursor and counters commit together.

use std::collections::HashSet;

use db::{Conn, Result};

use super::{postgres::pages as postgres, small, sqlite::pages as sqlite};
use crate::{Fingerprint, JobId, Place, Position, StagedRecord, staging};

/// The code of the note on a partition that ended with fewer records than its source counts.
pub const FEWER_THAN_COUNTED: &str = "fewer_than_the_source_counts";

/// One or a few pages to make durable, all of one segment.
#[derive(Debug)]
pub struct Commit {
    /// The job.
    pub job: JobId,
    /// The partition.
    pub part: i32,
    /// The fetcher's epoch.
    pub epoch: i64,
    /// The open segment.
    pub segment: i32,
    /// The run it belongs to.
    pub run: i32,
    /// Stored form of where the segment began.
    pub anchor: String,
    /// Where the pages began; the stored position must still be this.
    pub from: Position,
    /// Where the next page begins.
    pub to: Position,
    /// For each page: where it began and how many records it holds.
    pub pages: Vec<(Position, i32)>,
    /// The number of the first of these pages within the segment.
    pub first_page: i32,
    /// All their records, in order.
    pub records: Vec<StagedRecord>,
    /// Records staged in the segment before these.
    pub staged_before: i32,
    /// Chunks to make over what is staged then, in order.
    pub chunks: Vec<NewChunk>,
    /// Whether the segment ends here.
    pub close: bool,
    /// Requests that were repeated.
    pub retries: i64,
    /// How many records the source counts in the partition, if these pages say so.
    pub total: Option<i64>,
    /// Time spent fetching, in microseconds.
    pub fetch_micros: i64,
    /// How long the lease is prolonged.
    pub lease_seconds: i32,
}

/// A chunk over records that are staged by the end of the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewChunk {
    /// The ordinal of its first record.
    pub first_ordinal: i32,
    /// How many records it holds.
    pub records: i32,
}

impl Commit {
    /// Stored form of the new position.
    pub(super) fn stored_to(&self) -> String {
        self.to.to_stored()
    }

    /// Where the last of the new chunks ends; `None` without one.
    pub(crate) fn chunked(&self) -> Option<i32> {
        self.chunks.last().map(|chunk| chunk.first_ordinal + chunk.records)
    }

    /// Bytes staged by this commit.
    pub(super) fn bytes(&self) -> i64 {
        self.records.iter().map(|record| i64::try_from(record.raw.len()).unwrap_or(i64::MAX)).sum()
    }
}

/// Commits pages inside the caller's transaction. `false` means that the caller is fenced: another fetcher has taken
/// the partition over, or the position is no longer where these pages began. Nothing may be committed then.
pub async fn commit(conn: Conn<'_>, commit: &Commit) -> Result<bool> {
    db::dispatch!(conn, commit(commit))
}

/// Puts the staged records of the open segment that are in no chunk yet into one, for whoever holds `epoch`.
pub async fn flush_chunk(conn: Conn<'_>, job: JobId, part: i32, epoch: i64) -> Result<bool> {
    db::dispatch!(conn, flush_chunk(job.0, part, epoch))
}

/// What the open segment holds already, for a fetcher that takes over.
#[derive(Debug, Default)]
pub struct Resumed {
    /// Stored forms of the positions visited in the segment.
    pub visited: HashSet<String>,
    /// Fingerprints by ordinal, and the original of duplicates.
    pub fingerprints: Vec<Fingerprint>,
    /// Pages of the segment.
    pub pages: i32,
}

/// Reads what the open segment holds already.
pub async fn resume(conn: Conn<'_>, job: JobId, part: i32, segment: i32) -> Result<Resumed> {
    let (visited, blocks): (Vec<String>, Vec<BlockRow>) = db::dispatch!(conn, resume(job.0, part, segment))?;
    let mut fingerprints = Vec::new();
    for (ordinal, block) in blocks {
        let first = Place { partition: part, segment, ordinal };
        fingerprints.extend(staging::unpack(&block, first)?.into_iter().map(|record| record.fingerprint));
    }
    let pages = small(visited.len());
    Ok(Resumed { visited: visited.into_iter().collect(), fingerprints, pages })
}

/// How much is staged and not cleaned: segments and bytes.
pub async fn backlog(conn: Conn<'_>, job: JobId) -> Result<(i64, i64)> {
    let row: (i64, i64) = db::dispatch!(conn, backlog(job.0))?;
    Ok(row)
}

/// The ordinal of a block's first record, and the block ([`crate::staging`]).
pub(super) type BlockRow = (i32, Vec<u8>);

/// The staged records of a range of ordinals, in order.
pub async fn records(
    conn: Conn<'_>,
    job: JobId,
    part: i32,
    segment: i32,
    first: i32,
    count: i32,
) -> Result<Vec<StagedRecord>> {
    let end = first + count;
    let blocks: Vec<BlockRow> = db::dispatch!(conn, records(job.0, part, segment, first, end))?;
    let mut records = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
    for (ordinal, block) in blocks {
        let unpacked = staging::unpack(&block, Place { partition: part, segment, ordinal })?;
        records.extend(unpacked.into_iter().filter(|record| (first..end).contains(&record.place.ordinal)));
    }
    Ok(records)
}

/// Whether [`clean`] has something to do; a read, so that looking costs no write transaction.
pub async fn any_cleanable(conn: Conn<'_>, job: JobId) -> Result<bool> {
    db::dispatch!(conn, any_cleanable(job.0))
}

/// Cleans closed segments whose chunks are all settled and whose sums agree: staged records and pages go, the line of
/// history stays. Returns how many segments were cleaned.
pub async fn clean(conn: Conn<'_>, job: JobId) -> Result<i64> {
    db::dispatch!(conn, clean(job.0))
}
