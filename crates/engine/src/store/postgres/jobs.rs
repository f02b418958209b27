use db::{Id, Pg, Result, Timestamp};

use crate::NewJob;
use crate::store::jobs::{JobRow, Phase, Remaining};

/// A job with its sums; the caller adds WHERE, GROUP BY and ORDER BY.
macro_rules! job_columns {
    ($rest:literal) => {
        concat!(
            "SELECT j.id, j.kind, j.lane, j.mode, j.params, j.status, j.reason, j.waiting_until, j.request_id, j.run,
                j.created_at, j.started_at, j.last_progress_at, j.finished_at,
                (SELECT COALESCE(SUM(p.records), 0) FROM crossdock.partitions p WHERE p.job_id = j.id)::BIGINT AS fetched,
                (SELECT COALESCE(SUM(p.pages), 0) FROM crossdock.partitions p WHERE p.job_id = j.id)::BIGINT AS pages,
                (SELECT COALESCE(SUM(p.retries), 0) FROM crossdock.partitions p WHERE p.job_id = j.id)::BIGINT
                    AS fetch_retries,
                (SELECT CASE WHEN COUNT(*) = COUNT(p.expected) THEN SUM(p.expected) END FROM crossdock.partitions p
                    WHERE p.job_id = j.id AND p.status <> 'left_out' AND NOT p.closing)::BIGINT AS expected,
                (SELECT COUNT(*) FROM crossdock.partitions p
                    WHERE p.job_id = j.id AND p.status = 'ended' AND p.records < p.expected
                        -- What came late came with the closing partitions.
                        AND (p.closing
                            OR (SELECT SUM(o.expected - o.records) FROM crossdock.partitions o
                                WHERE o.job_id = j.id AND NOT o.closing AND o.status = 'ended'
                                    AND o.records < o.expected)
                            > (SELECT COALESCE(SUM(k.imported), 0) FROM crossdock.chunks k
                                JOIN crossdock.partitions l ON l.job_id = k.job_id AND l.part = k.part
                                WHERE k.job_id = j.id AND l.closing))) AS short_partitions,
                COALESCE(SUM(c.retries), 0)::BIGINT AS chunk_retries,
                COALESCE(SUM(c.imported), 0)::BIGINT AS imported,
                COALESCE(SUM(c.updated), 0)::BIGINT AS updated,
                COALESCE(SUM(c.unchanged), 0)::BIGINT AS unchanged,
                COALESCE(SUM(c.skipped), 0)::BIGINT AS skipped,
                COALESCE(SUM(c.filtered), 0)::BIGINT AS filtered,
                COALESCE(SUM(c.duplicate_in_source), 0)::BIGINT AS duplicate_in_source,
                COALESCE(SUM(c.failed), 0)::BIGINT AS failed,
                COALESCE(SUM(c.targets), 0)::BIGINT AS targets
            FROM crossdock.jobs j LEFT JOIN crossdock.chunks c ON c.job_id = j.id ",
            $rest
        )
    };
}

pub(in crate::store) async fn insert(pg: &mut Pg<'_>, id: Id, new: &NewJob) -> Result<()> {
    pg.query("INSERT INTO crossdock.jobs (id, kind, lane, mode, params, request_id) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(id)
        .bind(&new.kind)
        .bind(&new.lane)
        .bind(new.mode.as_str())
        .bind(&new.params)
        .bind(&new.request_id)
        .execute(&mut *pg.conn)
        .await?;
    pg.query("INSERT INTO crossdock.turns (job_id) VALUES ($1)").bind(id).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(in crate::store) async fn get(pg: &mut Pg<'_>, id: Id) -> Result<Option<JobRow>> {
    Ok(pg
        .query_as(job_columns!("WHERE j.id = $1 GROUP BY j.id"))
        .bind(id)
        .fetch_optional(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn list(
    pg: &mut Pg<'_>,
    kind: &str,
    before: Option<Id>,
    limit: i64,
) -> Result<Vec<JobRow>> {
    Ok(pg
        .query_as(job_columns!(
            "WHERE j.kind = $1 AND ($2::BIGINT IS NULL OR j.id < $2) GROUP BY j.id ORDER BY j.id DESC LIMIT $3"
        ))
        .bind(kind)
        .bind(before)
        .bind(limit)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn move_to(
    pg: &mut Pg<'_>,
    id: Id,
    from: &str,
    to: &str,
    reason: Option<&str>,
    until: Option<Timestamp>,
) -> Result<bool> {
    // An array, not IN over its rows: an update that waited for another one is judged again by the row of the list that it
    // had met before, and would be refused.
    let done = pg
        .query(
            "UPDATE crossdock.jobs SET status = $3, reason = $4, waiting_until = $5,
                started_at = CASE WHEN $3 = 'running' THEN COALESCE(started_at, clock_timestamp()) ELSE started_at END,
                last_progress_at = CASE WHEN $3 = 'running' THEN clock_timestamp() ELSE last_progress_at END,
                finished_at = CASE WHEN $3 IN ('completed', 'failed', 'cancelled') THEN clock_timestamp() END,
                rests_since = CASE WHEN $3 IN ('paused', 'failed', 'awaiting_token') THEN clock_timestamp() END
            WHERE id = $1 AND status = ANY (ARRAY(SELECT jsonb_array_elements_text($2::TEXT::JSONB)))",
        )
        .bind(id)
        .bind(from)
        .bind(to)
        .bind(reason)
        .bind(until)
        .execute(&mut *pg.conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(in crate::store) async fn start_due(pg: &mut Pg<'_>) -> Result<Vec<Id>> {
    pg.query(
        "UPDATE crossdock.jobs SET status = 'queued', reason = NULL, waiting_until = NULL
        WHERE status = 'waiting' AND waiting_until <= clock_timestamp()",
    )
    .execute(&mut *pg.conn)
    .await?;
    Ok(pg
        .scalar(
            "UPDATE crossdock.jobs j SET status = 'running', reason = NULL, finished_at = NULL,
                started_at = COALESCE(j.started_at, clock_timestamp()), last_progress_at = clock_timestamp()
            WHERE j.status = 'queued' AND j.id IN (
                SELECT MIN(q.id) FROM crossdock.jobs q
                WHERE q.status = 'queued' AND NOT EXISTS (
                    SELECT 1 FROM crossdock.jobs r WHERE r.lane = q.lane AND r.status = 'running')
                GROUP BY q.lane)
            RETURNING j.id",
        )
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn any_due(pg: &mut Pg<'_>) -> Result<bool> {
    Ok(pg
        .scalar(
            "SELECT EXISTS (SELECT 1 FROM crossdock.jobs WHERE status = 'queued'
                OR (status = 'waiting' AND waiting_until <= clock_timestamp()))",
        )
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn active(pg: &mut Pg<'_>) -> Result<Vec<(Id, String)>> {
    Ok(pg
        .query_as(
            "SELECT j.id, j.status FROM crossdock.jobs j WHERE j.status NOT IN ('completed', 'cancelled')
                AND (j.status = 'running' OR j.undoing) ORDER BY j.id",
        )
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn status(pg: &mut Pg<'_>, id: Id) -> Result<Option<String>> {
    Ok(pg
        .scalar("SELECT status FROM crossdock.jobs WHERE id = $1")
        .bind(id)
        .fetch_optional(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn phase(pg: &mut Pg<'_>, id: Id) -> Result<Phase> {
    Ok(pg
        .query_as("SELECT partitioned, checked, undoing FROM crossdock.jobs WHERE id = $1")
        .bind(id)
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn set_checked(pg: &mut Pg<'_>, id: Id) -> Result<()> {
    pg.query("UPDATE crossdock.jobs SET checked = TRUE WHERE id = $1")
        .bind(id)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}

pub(in crate::store) async fn set_undoing(pg: &mut Pg<'_>, id: Id, undoing: bool) -> Result<()> {
    pg.query("UPDATE crossdock.jobs SET undoing = $2 WHERE id = $1")
        .bind(id)
        .bind(undoing)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}

pub(in crate::store) async fn next_run(pg: &mut Pg<'_>, id: Id) -> Result<i32> {
    Ok(pg
        .scalar("UPDATE crossdock.jobs SET run = run + 1 WHERE id = $1 RETURNING run")
        .bind(id)
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn touch(pg: &mut Pg<'_>, id: Id) -> Result<()> {
    pg.query(
        "UPDATE crossdock.jobs SET last_progress_at = clock_timestamp()
        WHERE id = $1 AND (last_progress_at IS NULL OR last_progress_at < clock_timestamp() - INTERVAL '5 seconds')",
    )
    .bind(id)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn remaining(pg: &mut Pg<'_>, id: Id) -> Result<Remaining> {
    Ok(pg
        .query_as(
            "SELECT
                (SELECT COUNT(*) FROM crossdock.partitions WHERE job_id = $1 AND status IN ('fetching', 'broken'))
                    + (SELECT COUNT(*) FROM crossdock.jobs WHERE id = $1 AND NOT partitioned) AS partitions,
                (SELECT COUNT(*) FROM crossdock.partitions WHERE job_id = $1 AND status = 'broken') AS broken,
                (SELECT COUNT(*) FROM crossdock.segments WHERE job_id = $1 AND status <> 'cleaned') AS segments,
                (SELECT COUNT(*) FROM crossdock.chunks WHERE job_id = $1 AND status = 'ready') AS chunks",
        )
        .bind(id)
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn complete(pg: &mut Pg<'_>, id: Id) -> Result<bool> {
    let done = pg
        .query(
            "UPDATE crossdock.jobs SET status = 'completed', reason = NULL, finished_at = clock_timestamp()
            WHERE id = $1 AND status = 'running' AND partitioned AND NOT undoing
                AND NOT EXISTS (SELECT 1 FROM crossdock.partitions WHERE job_id = $1 AND status IN ('fetching', 'broken'))
                AND NOT EXISTS (SELECT 1 FROM crossdock.segments WHERE job_id = $1 AND status <> 'cleaned')
                AND (SELECT COALESCE(SUM(records), 0) FROM crossdock.partitions WHERE job_id = $1)
                    = (SELECT COALESCE(SUM(imported + updated + unchanged + skipped + filtered + duplicate_in_source
                        + failed), 0) FROM crossdock.chunks WHERE job_id = $1 AND status = 'settled')",
        )
        .bind(id)
        .execute(&mut *pg.conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(in crate::store) async fn sweep_stuck(pg: &mut Pg<'_>, minutes: i32) -> Result<Vec<Id>> {
    Ok(pg
        .scalar(
            "UPDATE crossdock.jobs SET status = 'failed', reason = 'worker stalled', finished_at = clock_timestamp(),
                rests_since = clock_timestamp()
            WHERE status = 'running' AND last_progress_at < clock_timestamp() - make_interval(mins => $1)
            RETURNING id",
        )
        .bind(minutes)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn expire_staged(pg: &mut Pg<'_>, days: i32, reason: &str) -> Result<Vec<Id>> {
    Ok(pg
        .scalar(
            "UPDATE crossdock.jobs AS j SET undoing = TRUE,
                reason = CASE WHEN j.reason IS NULL THEN $2 ELSE j.reason || '; ' || $2 END
            WHERE j.status IN ('paused', 'failed', 'awaiting_token') AND j.mode <> 'stream' AND NOT j.undoing
                AND COALESCE(j.rests_since, j.finished_at, j.last_progress_at, j.created_at) < clock_timestamp() - make_interval(days => $1)
                AND EXISTS (SELECT 1 FROM crossdock.segments s WHERE s.job_id = j.id AND s.status <> 'cleaned')
                AND (j.mode = 'dry_run' OR NOT EXISTS (
                    SELECT 1 FROM crossdock.chunks c WHERE c.job_id = j.id AND c.status = 'settled'))
            RETURNING id",
        )
        .bind(days)
        .bind(reason)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn oldest_snapshot(pg: &mut Pg<'_>) -> Result<i64> {
    Ok(pg
        .scalar(
            "SELECT COALESCE(MAX(EXTRACT(EPOCH FROM clock_timestamp() - xact_start)) * 1000000, 0)::BIGINT FROM pg_stat_activity
            WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()",
        )
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn discardable(pg: &mut Pg<'_>) -> Result<Vec<Id>> {
    Ok(pg
        .scalar(
            "SELECT DISTINCT s.job_id FROM crossdock.segments s JOIN crossdock.jobs j ON j.id = s.job_id
        WHERE s.status <> 'cleaned' AND j.status = 'cancelled'",
        )
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn discarded(pg: &mut Pg<'_>, id: Id) -> Result<()> {
    pg.query("DELETE FROM crossdock.pages WHERE job_id = $1").bind(id).execute(&mut *pg.conn).await?;
    pg.query(
        "UPDATE crossdock.segments SET status = 'cleaned', cleaned = records, cleaned_at = clock_timestamp()
        WHERE job_id = $1 AND status <> 'cleaned'",
    )
    .bind(id)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn reset(pg: &mut Pg<'_>, id: Id) -> Result<()> {
    // Segments, pages, chunks and manifest blocks go with their partition.
    pg.query("DELETE FROM crossdock.partitions WHERE job_id = $1").bind(id).execute(&mut *pg.conn).await?;
    pg.query("DELETE FROM crossdock.quarantine WHERE job_id = $1").bind(id).execute(&mut *pg.conn).await?;
    pg.query("DELETE FROM crossdock.notes WHERE job_id = $1").bind(id).execute(&mut *pg.conn).await?;
    pg.query("UPDATE crossdock.jobs SET partitioned = FALSE, checked = FALSE, undoing = FALSE WHERE id = $1")
        .bind(id)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}

pub(in crate::store) async fn append_reason(pg: &mut Pg<'_>, id: Id, more: &str) -> Result<()> {
    pg.query(
        "UPDATE crossdock.jobs SET reason = CASE WHEN reason IS NULL THEN $2 ELSE reason || '; ' || $2 END WHERE id = $1",
    )
    .bind(id)
    .bind(more)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn discard_staged(pg: &mut Pg<'_>, id: Id, limit: i64) -> Result<i64> {
    let done = pg
        .query(
            "DELETE FROM crossdock.staged_pages r USING (
                SELECT part, segment, first_ordinal FROM crossdock.staged_pages WHERE job_id = $1
                ORDER BY part, segment, first_ordinal LIMIT $2 FOR UPDATE SKIP LOCKED) d
            WHERE r.job_id = $1 AND r.part = d.part AND r.segment = d.segment AND r.first_ordinal = d.first_ordinal",
        )
        .bind(id)
        .bind(limit)
        .execute(&mut *pg.conn)
        .await?;
    Ok(i64::try_from(done.rows_affected()).unwrap_or(i64::MAX))
}

pub(in crate::store) async fn set_params(pg: &mut Pg<'_>, id: Id, params: &str) -> Result<()> {
    pg.query("UPDATE crossdock.jobs SET params = $2 WHERE id = $1")
        .bind(id)
        .bind(params)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}
