//! Jobs: making, reading, listing and moving them.

use std::time::Duration;

use db::{Conn, Id, Result, Timestamp};

use super::{Store, postgres::jobs as postgres, sqlite::jobs as sqlite};
use crate::failpoint;
use crate::{Counts, Job, JobId, Mode, NewJob, Status};

/// A job's row with its sums.
#[derive(sqlx::FromRow)]
pub(super) struct JobRow {
    id: Id,
    kind: String,
    lane: String,
    mode: String,
    params: String,
    status: String,
    reason: Option<String>,
    waiting_until: Option<Timestamp>,
    request_id: Option<String>,
    run: i32,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    last_progress_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    fetched: i64,
    pages: i64,
    fetch_retries: i64,
    expected: Option<i64>,
    short_partitions: i64,
    chunk_retries: i64,
    imported: i64,
    updated: i64,
    unchanged: i64,
    skipped: i64,
    filtered: i64,
    duplicate_in_source: i64,
    failed: i64,
    targets: i64,
}

impl From<JobRow> for Job {
    fn from(row: JobRow) -> Self {
        Self {
            id: JobId(row.id),
            kind: row.kind,
            lane: row.lane,
            mode: Mode::parse(&row.mode).expect("the schema checks the mode"),
            params: row.params,
            status: Status::parse(&row.status).expect("the schema checks the status"),
            reason: row.reason,
            waiting_until: row.waiting_until,
            request_id: row.request_id,
            run: row.run,
            created_at: row.created_at,
            started_at: row.started_at,
            last_progress_at: row.last_progress_at,
            finished_at: row.finished_at,
            fetched: row.fetched,
            pages: row.pages,
            retries: row.fetch_retries + row.chunk_retries,
            expected: row.expected,
            short_partitions: row.short_partitions,
            counts: Counts {
                imported: row.imported,
                updated: row.updated,
                unchanged: row.unchanged,
                skipped: row.skipped,
                filtered: row.filtered,
                duplicate_in_source: row.duplicate_in_source,
                failed: row.failed,
                targets: row.targets,
            },
        }
    }
}

/// What a job's loops need to know of its progress through the modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct Phase {
    /// The partitions are known.
    pub partitioned: bool,
    /// Every chunk was checked (modes that check first).
    pub checked: bool,
    /// What the job wrote is being undone.
    pub undoing: bool,
}

/// What is still to do in a running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct Remaining {
    /// Partitions that have not ended.
    pub partitions: i64,
    /// Of these, those that are given up until the job is resumed.
    pub broken: i64,
    /// Segments that are not cleaned.
    pub segments: i64,
    /// Chunks that are not settled.
    pub chunks: i64,
}

/// Inserts a queued job inside the caller's transaction, so that a kind's own rows commit with it.
pub async fn insert(conn: Conn<'_>, id: JobId, new: &NewJob) -> Result<()> {
    db::dispatch!(conn, insert(id.0, new))
}

/// A job with its sums.
pub async fn get(conn: Conn<'_>, id: JobId) -> Result<Option<Job>> {
    let row: Option<JobRow> = db::dispatch!(conn, get(id.0))?;
    Ok(row.map(Job::from))
}

/// Jobs of a kind, newest first, below `before`.
pub async fn list(conn: Conn<'_>, kind: &str, before: Option<JobId>, limit: i64) -> Result<Vec<Job>> {
    let rows: Vec<JobRow> = db::dispatch!(conn, list(kind, before.map(|id| id.0), limit))?;
    Ok(rows.into_iter().map(Job::from).collect())
}

/// Moves the job to `to` if it is in a state that may become it; tells whether it moved.
pub async fn move_to(
    conn: Conn<'_>,
    id: JobId,
    to: Status,
    reason: Option<&str>,
    until: Option<Timestamp>,
) -> Result<bool> {
    let from: Vec<&str> =
        Status::ALL.iter().filter(|from| from.may_become(to)).map(|from| from.as_str()).collect();
    let from = serde_json::to_string(&from).expect("a list of words is JSON");
    db::dispatch!(conn, move_to(id.0, &from, to.as_str(), reason, until))
}

/// Puts waiting jobs whose time has come back into the queue, then starts the oldest queued job of each free lane.
/// Returns the jobs that began to run.
pub async fn start_due(conn: Conn<'_>) -> Result<Vec<JobId>> {
    let ids: Vec<Id> = db::dispatch!(conn, start_due())?;
    Ok(ids.into_iter().map(JobId).collect())
}

/// Whether [`start_due`] has something to do; a read, so that an idle scheduler writes nothing.
pub async fn any_due(conn: Conn<'_>) -> Result<bool> {
    db::dispatch!(conn, any_due())
}

/// Jobs with work for a process: running ones, and failed ones whose writes are being undone.
pub async fn active(conn: Conn<'_>) -> Result<Vec<(JobId, Status)>> {
    let rows: Vec<(Id, String)> = db::dispatch!(conn, active())?;
    Ok(rows
        .into_iter()
        .map(|(id, status)| (JobId(id), Status::parse(&status).expect("the schema checks the status")))
        .collect())
}

/// The state alone.
pub async fn status(conn: Conn<'_>, id: JobId) -> Result<Option<Status>> {
    let word: Option<String> = db::dispatch!(conn, status(id.0))?;
    Ok(word.map(|word| Status::parse(&word).expect("the schema checks the status")))
}

/// How far the job is in its mode.
pub async fn phase(conn: Conn<'_>, id: JobId) -> Result<Phase> {
    db::dispatch!(conn, phase(id.0))
}

/// Marks that every chunk was checked.
pub async fn set_checked(conn: Conn<'_>, id: JobId) -> Result<()> {
    db::dispatch!(conn, set_checked(id.0))
}

/// Marks that what the job wrote is being undone, or that this is over.
pub async fn set_undoing(conn: Conn<'_>, id: JobId, undoing: bool) -> Result<()> {
    db::dispatch!(conn, set_undoing(id.0, undoing))
}

/// Raises the job's run number and returns it.
pub async fn next_run(conn: Conn<'_>, id: JobId) -> Result<i32> {
    db::dispatch!(conn, next_run(id.0))
}

/// Notes that the job moves; at most one write in five seconds.
pub async fn touch(conn: Conn<'_>, id: JobId) -> Result<()> {
    db::dispatch!(conn, touch(id.0))
}

/// What is still to do.
pub async fn remaining(conn: Conn<'_>, id: JobId) -> Result<Remaining> {
    db::dispatch!(conn, remaining(id.0))
}

/// Moves `running` to `completed` if every partition ended, every segment is cleaned and the sums agree.
pub async fn complete(conn: Conn<'_>, id: JobId) -> Result<bool> {
    db::dispatch!(conn, complete(id.0))
}

/// Fails running jobs that made no progress for `minutes`; returns them.
pub async fn sweep_stuck(conn: Conn<'_>, minutes: i32) -> Result<Vec<JobId>> {
    let ids: Vec<Id> = db::dispatch!(conn, sweep_stuck(minutes))?;
    Ok(ids.into_iter().map(JobId).collect())
}

/// Marks jobs that stage everything first, have written nothing and have rested for `days`: what they staged is to go, and
/// when they are resumed they begin anew. Returns them. The mark is that of an undoing, which takes away what is staged,
/// goes on after a crash, and ends before a job that is resumed meanwhile begins.
pub async fn expire_staged(conn: Conn<'_>, days: i32, reason: &str) -> Result<Vec<JobId>> {
    let ids: Vec<Id> = db::dispatch!(conn, expire_staged(days, reason))?;
    Ok(ids.into_iter().map(JobId).collect())
}

/// How long the oldest snapshot of this database has been held by somebody else; zero on SQLite.
pub async fn oldest_snapshot(conn: Conn<'_>) -> Result<Duration> {
    let micros: i64 = db::dispatch!(conn, oldest_snapshot())?;
    Ok(Duration::from_micros(micros.try_into().unwrap_or(0)))
}

/// Cancelled jobs that still have something staged.
pub async fn discardable(conn: Conn<'_>) -> Result<Vec<JobId>> {
    let ids: Vec<Id> = db::dispatch!(conn, discardable())?;
    Ok(ids.into_iter().map(JobId).collect())
}

/// Marks the segments of a job whose staged records were discarded as cleaned; their lines of history stay.
pub async fn discarded(conn: Conn<'_>, id: JobId) -> Result<()> {
    db::dispatch!(conn, discarded(id.0))
}

/// After everything a job wrote was undone: forgets its partitions, chunks and quarantine, so that the job begins
/// anew when it is resumed and its counters speak of nothing that is not there.
pub async fn reset(conn: Conn<'_>, id: JobId) -> Result<()> {
    db::dispatch!(conn, reset(id.0))
}

/// Says more about why a job stands where it does.
pub async fn append_reason(conn: Conn<'_>, id: JobId, more: &str) -> Result<()> {
    db::dispatch!(conn, append_reason(id.0, more))
}

/// Removes what a job staged and will not process. At most `limit` blocks; returns how many.
pub async fn discard_staged(conn: Conn<'_>, id: JobId, limit: i64) -> Result<i64> {
    db::dispatch!(conn, discard_staged(id.0, limit))
}

/// Replaces the kind's own parameters. A host that runs the job now keeps those it began with.
pub async fn set_params(conn: Conn<'_>, id: JobId, params: &str) -> Result<()> {
    db::dispatch!(conn, set_params(id.0, params))
}

impl Store {
    /// [`get`], on a connection of its own.
    pub async fn job(&self, id: JobId) -> Result<Option<Job>> {
        let mut reader = self.database.read().await?;
        get(reader.conn(), id).await
    }

    /// [`move_to`] in a transaction of its own.
    pub async fn move_job(
        &self,
        id: JobId,
        to: Status,
        reason: Option<&str>,
        until: Option<Timestamp>,
    ) -> Result<bool> {
        let mut tx = self.database.begin().await?;
        let moved = move_to(tx.conn(), id, to, reason, until).await?;
        if moved && to == Status::Queued {
            super::partitions::mend(tx.conn(), id).await?;
        }
        failpoint::pass("state.before_commit");
        tx.commit().await?;
        failpoint::pass("state.after_commit");
        Ok(moved)
    }
}
