use db::{Id, Result, Timestamp};
use sqlx::SqliteConnection;

use crate::NewJob;
use crate::store::jobs::{JobRow, Phase, Remaining};

/// A job with its sums; the caller adds WHERE, GROUP BY and ORDER BY.
macro_rules! job_columns {
    ($rest:literal) => {
        concat!(
            "SELECT j.id, j.kind, j.lane, j.mode, j.params, j.status, j.reason, j.waiting_until, j.request_id, j.run,
                j.created_at, j.started_at, j.last_progress_at, j.finished_at,
                (SELECT COALESCE(SUM(p.records), 0) FROM partitions p WHERE p.job_id = j.id) AS fetched,
                (SELECT COALESCE(SUM(p.pages), 0) FROM partitions p WHERE p.job_id = j.id) AS pages,
                (SELECT COALESCE(SUM(p.retries), 0) FROM partitions p WHERE p.job_id = j.id)
                    AS fetch_retries,
                (SELECT CASE WHEN COUNT(*) = COUNT(p.expected) THEN SUM(p.expected) END FROM partitions p
                    WHERE p.job_id = j.id AND p.status <> 'left_out' AND NOT p.closing) AS expected,
                (SELECT COUNT(*) FROM partitions p
                    WHERE p.job_id = j.id AND p.status = 'ended' AND p.records < p.expected
                        -- What came late came with the closing partitions.
                        AND (p.closing
                            OR (SELECT SUM(o.expected - o.records) FROM partitions o
                                WHERE o.job_id = j.id AND NOT o.closing AND o.status = 'ended'
                                    AND o.records < o.expected)
                            > (SELECT COALESCE(SUM(k.imported), 0) FROM chunks k
                                JOIN partitions l ON l.job_id = k.job_id AND l.part = k.part
                                WHERE k.job_id = j.id AND l.closing))) AS short_partitions,
                COALESCE(SUM(c.retries), 0) AS chunk_retries,
                COALESCE(SUM(c.imported), 0) AS imported,
                COALESCE(SUM(c.updated), 0) AS updated,
                COALESCE(SUM(c.unchanged), 0) AS unchanged,
                COALESCE(SUM(c.skipped), 0) AS skipped,
                COALESCE(SUM(c.filtered), 0) AS filtered,
                COALESCE(SUM(c.duplicate_in_source), 0) AS duplicate_in_source,
                COALESCE(SUM(c.failed), 0) AS failed,
                COALESCE(SUM(c.targets), 0) AS targets
            FROM jobs j LEFT JOIN chunks c ON c.job_id = j.id ",
            $rest
        )
    };
}

pub(in crate::store) async fn insert(conn: &mut SqliteConnection, id: Id, new: &NewJob) -> Result<()> {
    sqlx::query(
        "INSERT INTO jobs (id, kind, lane, mode, params, request_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )
    .bind(id)
    .bind(&new.kind)
    .bind(&new.lane)
    .bind(new.mode.as_str())
    .bind(&new.params)
    .bind(&new.request_id)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn get(conn: &mut SqliteConnection, id: Id) -> Result<Option<JobRow>> {
    Ok(sqlx::query_as(job_columns!("WHERE j.id = ?1 GROUP BY j.id"))
        .bind(id)
        .fetch_optional(&mut *conn)
        .await?)
}

pub(in crate::store) async fn list(
    conn: &mut SqliteConnection,
    kind: &str,
    before: Option<Id>,
    limit: i64,
) -> Result<Vec<JobRow>> {
    Ok(sqlx::query_as(job_columns!(
        "WHERE j.kind = ?1 AND (?2 IS NULL OR j.id < ?2) GROUP BY j.id ORDER BY j.id DESC LIMIT ?3"
    ))
    .bind(kind)
    .bind(before)
    .bind(limit)
    .fetch_all(&mut *conn)
    .await?)
}

pub(in crate::store) async fn move_to(
    conn: &mut SqliteConnection,
    id: Id,
    from: &str,
    to: &str,
    reason: Option<&str>,
    until: Option<Timestamp>,
) -> Result<bool> {
    let done = sqlx::query(
            "UPDATE jobs SET status = ?3, reason = ?4, waiting_until = ?5,
                started_at = CASE WHEN ?3 = 'running' THEN COALESCE(started_at, CAST(unixepoch('subsec') * 1000000 AS INTEGER)) ELSE started_at END,
                last_progress_at = CASE WHEN ?3 = 'running' THEN CAST(unixepoch('subsec') * 1000000 AS INTEGER) ELSE last_progress_at END,
                finished_at = CASE WHEN ?3 IN ('completed', 'failed', 'cancelled') THEN CAST(unixepoch('subsec') * 1000000 AS INTEGER) END,
                rests_since = CASE WHEN ?3 IN ('paused', 'failed', 'awaiting_token') THEN CAST(unixepoch('subsec') * 1000000 AS INTEGER) END
            WHERE id = ?1 AND status IN (SELECT value FROM json_each(?2))",
        )
        .bind(id)
        .bind(from)
        .bind(to)
        .bind(reason)
        .bind(until)
        .execute(&mut *conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(in crate::store) async fn start_due(conn: &mut SqliteConnection) -> Result<Vec<Id>> {
    sqlx::query(
        "UPDATE jobs SET status = 'queued', reason = NULL, waiting_until = NULL
        WHERE status = 'waiting' AND waiting_until <= CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
    )
    .execute(&mut *conn)
    .await?;
    Ok(sqlx::query_scalar(
            "UPDATE jobs AS j SET status = 'running', reason = NULL, finished_at = NULL,
                started_at = COALESCE(j.started_at, CAST(unixepoch('subsec') * 1000000 AS INTEGER)), last_progress_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
            WHERE j.status = 'queued' AND j.id IN (
                SELECT MIN(q.id) FROM jobs q
                WHERE q.status = 'queued' AND NOT EXISTS (
                    SELECT 1 FROM jobs r WHERE r.lane = q.lane AND r.status = 'running')
                GROUP BY q.lane)
            RETURNING id",
        )
        .fetch_all(&mut *conn)
        .await?)
}

pub(in crate::store) async fn any_due(conn: &mut SqliteConnection) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM jobs WHERE status = 'queued'
                OR (status = 'waiting' AND waiting_until <= CAST(unixepoch('subsec') * 1000000 AS INTEGER)))",
    )
    .fetch_one(&mut *conn)
    .await?)
}

pub(in crate::store) async fn active(conn: &mut SqliteConnection) -> Result<Vec<(Id, String)>> {
    Ok(sqlx::query_as(
        "SELECT j.id, j.status FROM jobs j WHERE j.status NOT IN ('completed', 'cancelled')
                AND (j.status = 'running' OR j.undoing) ORDER BY j.id",
    )
    .fetch_all(&mut *conn)
    .await?)
}

pub(in crate::store) async fn status(conn: &mut SqliteConnection, id: Id) -> Result<Option<String>> {
    Ok(sqlx::query_scalar("SELECT status FROM jobs WHERE id = ?1")
        .bind(id)
        .fetch_optional(&mut *conn)
        .await?)
}

pub(in crate::store) async fn phase(conn: &mut SqliteConnection, id: Id) -> Result<Phase> {
    Ok(sqlx::query_as("SELECT partitioned, checked, undoing FROM jobs WHERE id = ?1")
        .bind(id)
        .fetch_one(&mut *conn)
        .await?)
}

pub(in crate::store) async fn set_checked(conn: &mut SqliteConnection, id: Id) -> Result<()> {
    sqlx::query("UPDATE jobs SET checked = TRUE WHERE id = ?1").bind(id).execute(&mut *conn).await?;
    Ok(())
}

pub(in crate::store) async fn set_undoing(conn: &mut SqliteConnection, id: Id, undoing: bool) -> Result<()> {
    sqlx::query("UPDATE jobs SET undoing = ?2 WHERE id = ?1")
        .bind(id)
        .bind(undoing)
        .execute(&mut *conn)
        .await?;
    Ok(())
}

pub(in crate::store) async fn next_run(conn: &mut SqliteConnection, id: Id) -> Result<i32> {
    Ok(sqlx::query_scalar("UPDATE jobs SET run = run + 1 WHERE id = ?1 RETURNING run")
        .bind(id)
        .fetch_one(&mut *conn)
        .await?)
}

pub(in crate::store) async fn touch(conn: &mut SqliteConnection, id: Id) -> Result<()> {
    sqlx::query(
        "UPDATE jobs SET last_progress_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
        WHERE id = ?1 AND (last_progress_at IS NULL OR last_progress_at < CAST(unixepoch('subsec') * 1000000 AS INTEGER) - 5000000)",
    )
    .bind(id)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn remaining(conn: &mut SqliteConnection, id: Id) -> Result<Remaining> {
    Ok(sqlx::query_as(
        "SELECT
                (SELECT COUNT(*) FROM partitions WHERE job_id = ?1 AND status IN ('fetching', 'broken'))
                    + (SELECT COUNT(*) FROM jobs WHERE id = ?1 AND NOT partitioned) AS partitions,
                (SELECT COUNT(*) FROM partitions WHERE job_id = ?1 AND status = 'broken') AS broken,
                (SELECT COUNT(*) FROM segments WHERE job_id = ?1 AND status <> 'cleaned') AS segments,
                (SELECT COUNT(*) FROM chunks WHERE job_id = ?1 AND status = 'ready') AS chunks",
    )
    .bind(id)
    .fetch_one(&mut *conn)
    .await?)
}

pub(in crate::store) async fn complete(conn: &mut SqliteConnection, id: Id) -> Result<bool> {
    let done = sqlx::query(
            "UPDATE jobs SET status = 'completed', reason = NULL, finished_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
            WHERE id = ?1 AND status = 'running' AND partitioned AND NOT undoing
                AND NOT EXISTS (SELECT 1 FROM partitions WHERE job_id = ?1 AND status IN ('fetching', 'broken'))
                AND NOT EXISTS (SELECT 1 FROM segments WHERE job_id = ?1 AND status <> 'cleaned')
                AND (SELECT COALESCE(SUM(records), 0) FROM partitions WHERE job_id = ?1)
                    = (SELECT COALESCE(SUM(imported + updated + unchanged + skipped + filtered + duplicate_in_source
                        + failed), 0) FROM chunks WHERE job_id = ?1 AND status = 'settled')",
        )
        .bind(id)
        .execute(&mut *conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(in crate::store) async fn sweep_stuck(conn: &mut SqliteConnection, minutes: i32) -> Result<Vec<Id>> {
    Ok(sqlx::query_scalar(
            "UPDATE jobs SET status = 'failed', reason = 'worker stalled', finished_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER),
                rests_since = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
            WHERE status = 'running' AND last_progress_at < CAST(unixepoch('subsec') * 1000000 AS INTEGER) - ?1 * 60000000
            RETURNING id",
        )
        .bind(minutes)
        .fetch_all(&mut *conn)
        .await?)
}

pub(in crate::store) async fn expire_staged(
    conn: &mut SqliteConnection,
    days: i32,
    reason: &str,
) -> Result<Vec<Id>> {
    Ok(sqlx::query_scalar(
            "UPDATE jobs AS j SET undoing = TRUE,
                reason = CASE WHEN j.reason IS NULL THEN ?2 ELSE j.reason || '; ' || ?2 END
            WHERE j.status IN ('paused', 'failed', 'awaiting_token') AND j.mode <> 'stream' AND NOT j.undoing
                AND COALESCE(j.rests_since, j.finished_at, j.last_progress_at, j.created_at) < CAST(unixepoch('subsec') * 1000000 AS INTEGER) - ?1 * 86400000000
                AND EXISTS (SELECT 1 FROM segments s WHERE s.job_id = j.id AND s.status <> 'cleaned')
                AND (j.mode = 'dry_run' OR NOT EXISTS (
                    SELECT 1 FROM chunks c WHERE c.job_id = j.id AND c.status = 'settled'))
            RETURNING id",
        )
        .bind(days)
        .bind(reason)
        .fetch_all(&mut *conn)
        .await?)
}

pub(in crate::store) async fn oldest_snapshot(_conn: &mut SqliteConnection) -> Result<i64> {
    Ok(0)
}

pub(in crate::store) async fn discardable(conn: &mut SqliteConnection) -> Result<Vec<Id>> {
    Ok(sqlx::query_scalar(
        "SELECT DISTINCT s.job_id FROM segments s JOIN jobs j ON j.id = s.job_id
        WHERE s.status <> 'cleaned' AND j.status = 'cancelled'",
    )
    .fetch_all(&mut *conn)
    .await?)
}

pub(in crate::store) async fn discarded(conn: &mut SqliteConnection, id: Id) -> Result<()> {
    sqlx::query("DELETE FROM pages WHERE job_id = ?1").bind(id).execute(&mut *conn).await?;
    sqlx::query(
        "UPDATE segments SET status = 'cleaned', cleaned = records, cleaned_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
        WHERE job_id = ?1 AND status <> 'cleaned'",
    )
    .bind(id)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn reset(conn: &mut SqliteConnection, id: Id) -> Result<()> {
    // Segments, pages, chunks and manifest blocks go with their partition.
    sqlx::query("DELETE FROM partitions WHERE job_id = ?1").bind(id).execute(&mut *conn).await?;
    sqlx::query("DELETE FROM quarantine WHERE job_id = ?1").bind(id).execute(&mut *conn).await?;
    sqlx::query("DELETE FROM notes WHERE job_id = ?1").bind(id).execute(&mut *conn).await?;
    sqlx::query("UPDATE jobs SET partitioned = FALSE, checked = FALSE, undoing = FALSE WHERE id = ?1")
        .bind(id)
        .execute(&mut *conn)
        .await?;
    Ok(())
}

pub(in crate::store) async fn append_reason(conn: &mut SqliteConnection, id: Id, more: &str) -> Result<()> {
    sqlx::query(
        "UPDATE jobs SET reason = CASE WHEN reason IS NULL THEN ?2 ELSE reason || '; ' || ?2 END WHERE id = ?1",
    )
    .bind(id)
    .bind(more)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn discard_staged(conn: &mut SqliteConnection, id: Id, limit: i64) -> Result<i64> {
    let done = sqlx::query(
        "DELETE FROM staged_pages WHERE place IN (
            SELECT r.place FROM segments s
            JOIN staged_pages r ON r.place >= s.stage * 16777216 AND r.place < (s.stage + 1) * 16777216
            WHERE s.job_id = ?1 AND s.status <> 'cleaned' LIMIT ?2)",
    )
    .bind(id)
    .bind(limit)
    .execute(&mut *conn)
    .await?;
    Ok(i64::try_from(done.rows_affected()).unwrap_or(i64::MAX))
}

pub(in crate::store) async fn set_params(conn: &mut SqliteConnection, id: Id, params: &str) -> Result<()> {
    sqlx::query("UPDATE jobs SET params = ?2 WHERE id = ?1")
        .bind(id)
        .bind(params)
        .execute(&mut *conn)
        .await?;
    Ok(())
}
