use std::time::Duration;

use db::{Id, Result};
use sqlx::SqliteConnection;

use crate::store::partitions::{Checkpoint, OTHERS_BROKEN, Progress, State};

pub(in crate::store) async fn insert(conn: &mut SqliteConnection, id: Id, rows: &str) -> Result<()> {
    sqlx::query(
        "INSERT INTO partitions (job_id, part, key, expected, status, reason, closing)
        SELECT ?1, (row.value ->> 0), row.value ->> 1, (row.value ->> 2), row.value ->> 3, row.value ->> 4,
            row.value ->> 5
        FROM json_each(?2) AS row",
    )
    .bind(id)
    .bind(rows)
    .execute(&mut *conn)
    .await?;
    sqlx::query("UPDATE jobs SET partitioned = TRUE WHERE id = ?1").bind(id).execute(&mut *conn).await?;
    Ok(())
}

pub(in crate::store) async fn take(
    conn: &mut SqliteConnection,
    id: Id,
    holder: &str,
    lease_seconds: i32,
    one_by_one: bool,
    alone: bool,
    busy: &[i32],
) -> Result<Option<Checkpoint>> {
    Ok(sqlx::query_as(
            "UPDATE partitions AS p SET epoch = epoch + 1, holder = ?2,
                lease_until = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + ?3 * 1000000
            WHERE p.job_id = ?1 AND p.part = (
                SELECT c.part FROM partitions c
                WHERE c.job_id = ?1 AND c.status = 'fetching'
                    AND c.part NOT IN (SELECT value FROM json_each(?6))
                    AND (c.lease_until IS NULL OR c.lease_until < CAST(unixepoch('subsec') * 1000000 AS INTEGER)
                        OR c.holder = ?2 OR ?5)
                    AND (NOT c.closing OR (
                        NOT EXISTS (SELECT 1 FROM partitions b
                            WHERE b.job_id = ?1 AND NOT b.closing AND b.status = 'fetching')
                        AND NOT EXISTS (SELECT 1 FROM jobs j JOIN chunks k ON k.job_id = j.id
                            WHERE j.id = ?1 AND j.mode = 'stream' AND k.status = 'ready')))
                    AND (NOT ?4 OR NOT EXISTS (
                        SELECT 1 FROM partitions b
                        WHERE b.job_id = ?1 AND b.status = 'fetching' AND b.part < c.part))
                ORDER BY c.part LIMIT 1)
            RETURNING part, key, expected, closing, epoch, segment, anchor, position, staged, chunked, pages, run,
                run_records, run_started_at",
        )
        .bind(id)
        .bind(holder)
        .bind(lease_seconds)
        .bind(one_by_one)
        .bind(alone)
        .bind(serde_json::to_string(busy).expect("numbers are JSON"))
        .fetch_optional(&mut *conn)
        .await?)
}

pub(in crate::store) async fn any_free(
    conn: &mut SqliteConnection,
    id: Id,
    holder: &str,
    one_by_one: bool,
    alone: bool,
    busy: &[i32],
) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM partitions c
            WHERE c.job_id = ?1 AND c.status = 'fetching' AND c.part NOT IN (SELECT value FROM json_each(?5))
                AND (c.lease_until IS NULL OR c.lease_until < CAST(unixepoch('subsec') * 1000000 AS INTEGER)
                    OR c.holder = ?2 OR ?4)
                AND (NOT c.closing OR (
                    NOT EXISTS (SELECT 1 FROM partitions b
                        WHERE b.job_id = ?1 AND NOT b.closing AND b.status = 'fetching')
                    AND NOT EXISTS (SELECT 1 FROM jobs j JOIN chunks k ON k.job_id = j.id
                        WHERE j.id = ?1 AND j.mode = 'stream' AND k.status = 'ready')))
                AND (NOT ?3 OR NOT EXISTS (
                    SELECT 1 FROM partitions b
                    WHERE b.job_id = ?1 AND b.status = 'fetching' AND b.part < c.part)))",
    )
    .bind(id)
    .bind(holder)
    .bind(one_by_one)
    .bind(alone)
    .bind(serde_json::to_string(busy).expect("numbers are JSON"))
    .fetch_one(&mut *conn)
    .await?)
}

pub(in crate::store) async fn renew(
    conn: &mut SqliteConnection,
    id: Id,
    part: i32,
    epoch: i64,
    lease_seconds: i32,
) -> Result<bool> {
    let done = sqlx::query(
            "UPDATE partitions SET lease_until = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + ?4 * 1000000
            WHERE job_id = ?1 AND part = ?2 AND epoch = ?3 AND lease_until >= CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
        )
        .bind(id)
        .bind(part)
        .bind(epoch)
        .bind(lease_seconds)
        .execute(&mut *conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(in crate::store) async fn release(
    conn: &mut SqliteConnection,
    id: Id,
    part: i32,
    epoch: i64,
) -> Result<()> {
    sqlx::query(
        "UPDATE partitions SET holder = NULL, lease_until = NULL
        WHERE job_id = ?1 AND part = ?2 AND epoch = ?3",
    )
    .bind(id)
    .bind(part)
    .bind(epoch)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn any_unheld(
    conn: &mut SqliteConnection,
    id: Id,
    grace: Duration,
) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM partitions WHERE job_id = ?1 AND status = 'fetching')
                AND NOT EXISTS (SELECT 1 FROM partitions
                    WHERE job_id = ?1 AND status = 'fetching'
                        AND (lease_until >= CAST(unixepoch('subsec') * 1000000 AS INTEGER) - ?2
                            -- It could be taken only when the last chunk was settled.
                            OR closing AND lease_until IS NULL AND EXISTS (SELECT 1 FROM chunks
                                WHERE job_id = ?1
                                    AND settled_at >= CAST(unixepoch('subsec') * 1000000 AS INTEGER) - ?2)))",
    )
    .bind(id)
    .bind(i64::try_from(grace.as_micros()).unwrap_or(i64::MAX))
    .fetch_one(&mut *conn)
    .await?)
}

pub(in crate::store) async fn fence(
    conn: &mut SqliteConnection,
    id: Id,
    alone: bool,
) -> Result<Vec<(i32, i64)>> {
    Ok(sqlx::query_as(
            "UPDATE partitions SET epoch = epoch + 1, holder = NULL, lease_until = NULL
            WHERE job_id = ?1 AND status = 'fetching' AND staged > chunked
                AND (lease_until IS NULL OR lease_until < CAST(unixepoch('subsec') * 1000000 AS INTEGER) OR ?2)
            RETURNING part, epoch",
        )
        .bind(id)
        .bind(alone)
        .fetch_all(&mut *conn)
        .await?)
}

pub(in crate::store) async fn list(conn: &mut SqliteConnection, id: Id) -> Result<Vec<State>> {
    Ok(sqlx::query_as(
        "SELECT key, status, reason, records, expected FROM partitions WHERE job_id = ?1 ORDER BY part",
    )
    .bind(id)
    .fetch_all(&mut *conn)
    .await?)
}

pub(in crate::store) async fn break_off(
    conn: &mut SqliteConnection,
    id: Id,
    part: i32,
    epoch: i64,
    reason: &str,
) -> Result<()> {
    sqlx::query(
        "UPDATE partitions SET status = 'broken', reason = ?4, holder = NULL, lease_until = NULL
        WHERE job_id = ?1 AND part = ?2 AND epoch = ?3 AND status = 'fetching'",
    )
    .bind(id)
    .bind(part)
    .bind(epoch)
    .bind(reason)
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "UPDATE partitions SET status = 'broken', reason = ?3
        WHERE job_id = ?1 AND closing AND status = 'fetching' AND EXISTS (
            SELECT 1 FROM partitions p
            WHERE p.job_id = ?1 AND p.part = ?2 AND p.status = 'broken' AND NOT p.closing)",
    )
    .bind(id)
    .bind(part)
    .bind(OTHERS_BROKEN)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn mend(conn: &mut SqliteConnection, id: Id) -> Result<()> {
    sqlx::query(
        "UPDATE partitions SET status = 'fetching', reason = NULL WHERE job_id = ?1 AND status = 'broken'",
    )
    .bind(id)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn progress_after_doubt(
    conn: &mut SqliteConnection,
    id: Id,
    part: i32,
) -> Result<Progress> {
    Ok(sqlx::query_as(
        "SELECT epoch, segment, pages, chunked FROM partitions WHERE job_id = ?1 AND part = ?2",
    )
    .bind(id)
    .bind(part)
    .fetch_one(&mut *conn)
    .await?)
}

pub(in crate::store) async fn begin_run(
    conn: &mut SqliteConnection,
    id: Id,
    part: i32,
    epoch: i64,
    run: i32,
) -> Result<bool> {
    let done = sqlx::query(
            "UPDATE partitions SET run = ?4, run_records = 0, run_started_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
            WHERE job_id = ?1 AND part = ?2 AND epoch = ?3",
        )
        .bind(id)
        .bind(part)
        .bind(epoch)
        .bind(run)
        .execute(&mut *conn)
        .await?;
    Ok(done.rows_affected() == 1)
}
