use std::time::Duration;

use db::{Id, Pg, Result};

use crate::store::partitions::{Checkpoint, OTHERS_BROKEN, Progress, State};

pub(in crate::store) async fn insert(pg: &mut Pg<'_>, id: Id, rows: &str) -> Result<()> {
    pg.query(
        "INSERT INTO crossdock.partitions (job_id, part, key, expected, status, reason, closing)
        SELECT $1, (row ->> 0)::INTEGER, row ->> 1, (row ->> 2)::BIGINT, row ->> 3, row ->> 4, (row ->> 5)::BOOLEAN
        FROM jsonb_array_elements($2::TEXT::JSONB) AS row",
    )
    .bind(id)
    .bind(rows)
    .execute(&mut *pg.conn)
    .await?;
    pg.query("UPDATE crossdock.jobs SET partitioned = TRUE WHERE id = $1")
        .bind(id)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}

pub(in crate::store) async fn take(
    pg: &mut Pg<'_>,
    id: Id,
    holder: &str,
    lease_seconds: i32,
    one_by_one: bool,
    alone: bool,
    busy: &[i32],
) -> Result<Option<Checkpoint>> {
    Ok(pg
        .query_as(
            // Materialised, so that it runs once: as a joined subquery it may be run again for each row, and then skips
            // the row it has just taken and takes the next one too.
            "WITH free AS MATERIALIZED (
                SELECT c.part FROM crossdock.partitions c
                WHERE c.job_id = $1 AND c.status = 'fetching' AND c.part <> ALL ($6)
                    AND (c.lease_until IS NULL OR c.lease_until < clock_timestamp() OR c.holder = $2 OR $5)
                    AND (NOT c.closing OR (
                        NOT EXISTS (SELECT 1 FROM crossdock.partitions b
                            WHERE b.job_id = $1 AND NOT b.closing AND b.status = 'fetching')
                        AND NOT EXISTS (SELECT 1 FROM crossdock.jobs j JOIN crossdock.chunks k ON k.job_id = j.id
                            WHERE j.id = $1 AND j.mode = 'stream' AND k.status = 'ready')))
                    AND (NOT $4 OR NOT EXISTS (
                        SELECT 1 FROM crossdock.partitions b
                        WHERE b.job_id = $1 AND b.status = 'fetching' AND b.part < c.part))
                ORDER BY c.part LIMIT 1 FOR UPDATE SKIP LOCKED)
            UPDATE crossdock.partitions p SET epoch = p.epoch + 1, holder = $2,
                lease_until = clock_timestamp() + make_interval(secs => $3)
            FROM free WHERE p.job_id = $1 AND p.part = free.part
            RETURNING p.part, p.key, p.expected, p.closing, p.epoch, p.segment, p.anchor, p.position, p.staged, p.chunked,
                p.pages, p.run, p.run_records, p.run_started_at",
        )
        .bind(id)
        .bind(holder)
        .bind(lease_seconds)
        .bind(one_by_one)
        .bind(alone)
        .bind(busy)
        .fetch_optional(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn any_free(
    pg: &mut Pg<'_>,
    id: Id,
    holder: &str,
    one_by_one: bool,
    alone: bool,
    busy: &[i32],
) -> Result<bool> {
    Ok(pg
        .scalar(
            "SELECT EXISTS (SELECT 1 FROM crossdock.partitions c
                WHERE c.job_id = $1 AND c.status = 'fetching' AND c.part <> ALL ($5)
                    AND (c.lease_until IS NULL OR c.lease_until < clock_timestamp() OR c.holder = $2 OR $4)
                    AND (NOT c.closing OR (
                        NOT EXISTS (SELECT 1 FROM crossdock.partitions b
                            WHERE b.job_id = $1 AND NOT b.closing AND b.status = 'fetching')
                        AND NOT EXISTS (SELECT 1 FROM crossdock.jobs j JOIN crossdock.chunks k ON k.job_id = j.id
                            WHERE j.id = $1 AND j.mode = 'stream' AND k.status = 'ready')))
                    AND (NOT $3 OR NOT EXISTS (
                        SELECT 1 FROM crossdock.partitions b
                        WHERE b.job_id = $1 AND b.status = 'fetching' AND b.part < c.part)))",
        )
        .bind(id)
        .bind(holder)
        .bind(one_by_one)
        .bind(alone)
        .bind(busy)
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn renew(
    pg: &mut Pg<'_>,
    id: Id,
    part: i32,
    epoch: i64,
    lease_seconds: i32,
) -> Result<bool> {
    let done = pg
        .query(
            "UPDATE crossdock.partitions SET lease_until = clock_timestamp() + make_interval(secs => $4)
            WHERE job_id = $1 AND part = $2 AND epoch = $3 AND lease_until >= clock_timestamp()",
        )
        .bind(id)
        .bind(part)
        .bind(epoch)
        .bind(lease_seconds)
        .execute(&mut *pg.conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(in crate::store) async fn release(pg: &mut Pg<'_>, id: Id, part: i32, epoch: i64) -> Result<()> {
    // When it ended is kept: others see since when nobody has fetched.
    pg.query(
        "UPDATE crossdock.partitions SET holder = NULL, lease_until = clock_timestamp()
        WHERE job_id = $1 AND part = $2 AND epoch = $3",
    )
    .bind(id)
    .bind(part)
    .bind(epoch)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn any_unheld(pg: &mut Pg<'_>, id: Id, grace: Duration) -> Result<bool> {
    Ok(pg
        .scalar(
            // A row that is locked is one that somebody is taking or committing to, or did until it froze. Locks are
            // looked for last, because looking takes some.
            "SELECT CASE
                WHEN NOT EXISTS (SELECT 1 FROM crossdock.partitions WHERE job_id = $1 AND status = 'fetching') THEN FALSE
                WHEN EXISTS (SELECT 1 FROM crossdock.partitions
                    WHERE job_id = $1 AND status = 'fetching'
                        AND lease_until >= clock_timestamp() - make_interval(secs => $2)) THEN FALSE
                ELSE (SELECT count(*) FROM crossdock.partitions WHERE job_id = $1 AND status = 'fetching')
                    = (SELECT count(*) FROM (
                        SELECT 1 FROM crossdock.partitions
                        WHERE job_id = $1 AND status = 'fetching' FOR SHARE SKIP LOCKED) f) END",
        )
        .bind(id)
        .bind(grace.as_secs_f64())
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn fence(pg: &mut Pg<'_>, id: Id, alone: bool) -> Result<Vec<(i32, i64)>> {
    Ok(pg
        .query_as(
            "UPDATE crossdock.partitions SET epoch = epoch + 1, holder = NULL, lease_until = NULL
            WHERE job_id = $1 AND status = 'fetching' AND staged > chunked
                AND (lease_until IS NULL OR lease_until < clock_timestamp() OR $2)
            RETURNING part, epoch",
        )
        .bind(id)
        .bind(alone)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn list(pg: &mut Pg<'_>, id: Id) -> Result<Vec<State>> {
    Ok(pg
        .query_as(
            "SELECT key, status, reason, records, expected FROM crossdock.partitions WHERE job_id = $1 ORDER BY part",
        )
        .bind(id)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn break_off(
    pg: &mut Pg<'_>,
    id: Id,
    part: i32,
    epoch: i64,
    reason: &str,
) -> Result<()> {
    pg.query(
        "UPDATE crossdock.partitions SET status = 'broken', reason = $4, holder = NULL, lease_until = NULL
        WHERE job_id = $1 AND part = $2 AND epoch = $3 AND status = 'fetching'",
    )
    .bind(id)
    .bind(part)
    .bind(epoch)
    .bind(reason)
    .execute(&mut *pg.conn)
    .await?;
    pg.query(
        "UPDATE crossdock.partitions c SET status = 'broken', reason = $3
        FROM crossdock.partitions p
        WHERE p.job_id = $1 AND p.part = $2 AND p.status = 'broken' AND NOT p.closing
            AND c.job_id = $1 AND c.closing AND c.status = 'fetching'",
    )
    .bind(id)
    .bind(part)
    .bind(OTHERS_BROKEN)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn mend(pg: &mut Pg<'_>, id: Id) -> Result<()> {
    pg.query(
        "UPDATE crossdock.partitions SET status = 'fetching', reason = NULL WHERE job_id = $1 AND status = 'broken'",
    )
    .bind(id)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn progress_after_doubt(pg: &mut Pg<'_>, id: Id, part: i32) -> Result<Progress> {
    Ok(pg
        .query_as("SELECT epoch, segment, pages, chunked FROM crossdock.partitions WHERE job_id = $1 AND part = $2 FOR UPDATE")
        .bind(id)
        .bind(part)
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn begin_run(
    pg: &mut Pg<'_>,
    id: Id,
    part: i32,
    epoch: i64,
    run: i32,
) -> Result<bool> {
    let done = pg
        .query(
            "UPDATE crossdock.partitions SET run = $4, run_records = 0, run_started_at = clock_timestamp()
            WHERE job_id = $1 AND part = $2 AND epoch = $3",
        )
        .bind(id)
        .bind(part)
        .bind(epoch)
        .bind(run)
        .execute(&mut *pg.conn)
        .await?;
    Ok(done.rows_affected() == 1)
}
