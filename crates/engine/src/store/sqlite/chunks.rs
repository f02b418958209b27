use db::{Id, Result};
use sqlx::SqliteConnection;

use crate::Outcome;
use crate::store::chunks::{Chunk, Key, Settlement, rows_json};

pub(in crate::store) async fn any_due(conn: &mut SqliteConnection, job: Id, serial: bool) -> Result<bool> {
    let low: Option<i32> = sqlx::query_scalar(
        "SELECT low.part FROM (
            SELECT part FROM chunks
            WHERE job_id = ?1 AND status = 'ready' ORDER BY part, segment, first_ordinal LIMIT 1) low
        WHERE NOT ?2 OR NOT EXISTS (
            SELECT 1 FROM partitions p WHERE p.job_id = ?1 AND p.part < low.part AND p.status = 'fetching')",
    )
    .bind(job)
    .bind(serial)
    .fetch_optional(&mut *conn)
    .await?;
    Ok(low.is_some())
}

pub(in crate::store) async fn attempt(
    conn: &mut SqliteConnection,
    job: Id,
    serial: bool,
    busy: &[Key],
) -> Result<Option<Chunk>> {
    Ok(sqlx::query_as(
        "UPDATE chunks AS c SET attempts = attempts + 1
        WHERE c.job_id = ?1 AND (c.part, c.segment, c.first_ordinal) = (
                SELECT part, segment, first_ordinal FROM chunks
                WHERE job_id = ?1 AND status = 'ready'
                    AND (part, segment, first_ordinal) NOT IN (
                        SELECT b.value ->> 0, b.value ->> 1, b.value ->> 2 FROM json_each(?3) AS b)
                ORDER BY part, segment, first_ordinal LIMIT 1)
            AND (NOT ?2 OR NOT EXISTS (
                SELECT 1 FROM partitions p WHERE p.job_id = ?1 AND p.part < c.part AND p.status = 'fetching'))
        RETURNING part, segment, first_ordinal, records, attempts",
    )
    .bind(job)
    .bind(serial)
    .bind(serde_json::to_string(busy).expect("numbers are JSON"))
    .fetch_optional(&mut *conn)
    .await?)
}

/// Nobody else can have the turn: one process runs jobs, and one transaction writes at a time.
pub(in crate::store) async fn take_turn(_conn: &mut SqliteConnection, _job: Id) -> Result<bool> {
    Ok(true)
}

/// One process holds the runner lock and one transaction writes at a time, so a ready chunk is a free one.
pub(in crate::store) async fn claim(
    conn: &mut SqliteConnection,
    job: Id,
    chunk: &Chunk,
    _serial: bool,
) -> Result<bool> {
    let held: Option<i32> = sqlx::query_scalar(
        "SELECT 1 FROM chunks
        WHERE job_id = ?1 AND part = ?2 AND segment = ?3 AND first_ordinal = ?4 AND records = ?5 AND status = 'ready'
            AND EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND status = 'running' AND NOT undoing)",
    )
    .bind(job)
    .bind(chunk.part)
    .bind(chunk.segment)
    .bind(chunk.first_ordinal)
    .bind(chunk.records)
    .fetch_optional(&mut *conn)
    .await?;
    Ok(held.is_some())
}

pub(in crate::store) async fn hold_all(_conn: &mut SqliteConnection, _job: Id) -> Result<()> {
    Ok(())
}

pub(in crate::store) async fn forgive(conn: &mut SqliteConnection, job: Id, chunk: &Chunk) -> Result<()> {
    sqlx::query(
        "UPDATE chunks SET attempts = MAX(attempts - 1, 0)
        WHERE job_id = ?1 AND part = ?2 AND segment = ?3 AND first_ordinal = ?4 AND status = 'ready'",
    )
    .bind(job)
    .bind(chunk.part)
    .bind(chunk.segment)
    .bind(chunk.first_ordinal)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn settle(
    conn: &mut SqliteConnection,
    job: Id,
    chunk: &Chunk,
    settlement: &Settlement,
) -> Result<bool> {
    let counts = &settlement.counts;
    let done = sqlx::query(
            "UPDATE chunks SET status = 'settled', settled_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER), retries = retries + ?5,
                imported = ?6, updated = ?7, unchanged = ?8, skipped = ?9, filtered = ?10, duplicate_in_source = ?11,
                failed = ?12, targets = ?13, process_micros = ?14
            WHERE job_id = ?1 AND part = ?2 AND segment = ?3 AND first_ordinal = ?4 AND status = 'ready'",
        )
        .bind(job)
        .bind(chunk.part)
        .bind(chunk.segment)
        .bind(chunk.first_ordinal)
        .bind(settlement.retries)
        .bind(counts.imported)
        .bind(counts.updated)
        .bind(counts.unchanged)
        .bind(counts.skipped)
        .bind(counts.filtered)
        .bind(counts.duplicate_in_source)
        .bind(counts.failed)
        .bind(counts.targets)
        .bind(settlement.process_micros)
        .execute(&mut *conn)
        .await?;
    if done.rows_affected() != 1 {
        return Ok(false);
    }
    sqlx::query(
        "INSERT INTO manifest_blocks (job_id, part, segment, first_ordinal, block) VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .bind(job)
    .bind(chunk.part)
    .bind(chunk.segment)
    .bind(chunk.first_ordinal)
    .bind(&settlement.block)
    .execute(&mut *conn)
    .await?;
    insert_exceptions(conn, job, chunk, settlement).await?;
    Ok(true)
}

async fn insert_exceptions(
    conn: &mut SqliteConnection,
    job: Id,
    chunk: &Chunk,
    settlement: &Settlement,
) -> Result<()> {
    if settlement.exceptions.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO notes (job_id, part, segment, ordinal, source_id, label, outcome, code, detail)
        SELECT ?1, ?2, ?3, r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5
        FROM json_each(?4) AS r
        WHERE (SELECT COUNT(*) FROM notes WHERE job_id = ?1) + r.key < ?5",
    )
    .bind(job)
    .bind(chunk.part)
    .bind(chunk.segment)
    .bind(rows_json(settlement.exceptions.iter()))
    .bind(settlement.notes_max)
    .execute(&mut *conn)
    .await?;
    for exception in settlement.exceptions.iter().filter(|exception| exception.outcome == Outcome::Failed) {
        sqlx::query(
            "INSERT INTO quarantine (job_id, part, segment, ordinal, source_id, label, code, detail, raw)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )
        .bind(job)
        .bind(chunk.part)
        .bind(chunk.segment)
        .bind(exception.ordinal)
        .bind(&exception.source_id)
        .bind(&exception.label)
        .bind(&exception.code)
        .bind(&exception.detail)
        .bind(&exception.raw[..])
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

pub(in crate::store) async fn settled_after_doubt(
    conn: &mut SqliteConnection,
    job: Id,
    chunk: &Chunk,
) -> Result<bool> {
    let status: Option<String> = sqlx::query_scalar(
        "SELECT status FROM chunks
            WHERE job_id = ?1 AND part = ?2 AND segment = ?3 AND first_ordinal = ?4",
    )
    .bind(job)
    .bind(chunk.part)
    .bind(chunk.segment)
    .bind(chunk.first_ordinal)
    .fetch_optional(&mut *conn)
    .await?;
    Ok(status.as_deref() == Some("settled"))
}

pub(in crate::store) async fn split(conn: &mut SqliteConnection, job: Id, chunk: &Chunk) -> Result<bool> {
    let half = chunk.records / 2;
    let done = sqlx::query(
            "UPDATE chunks SET records = ?6, attempts = 0
            WHERE job_id = ?1 AND part = ?2 AND segment = ?3 AND first_ordinal = ?4 AND records = ?5 AND status = 'ready'",
        )
        .bind(job)
        .bind(chunk.part)
        .bind(chunk.segment)
        .bind(chunk.first_ordinal)
        .bind(chunk.records)
        .bind(half)
        .execute(&mut *conn)
        .await?;
    if done.rows_affected() != 1 {
        return Ok(false);
    }
    sqlx::query(
        "INSERT INTO chunks (job_id, part, segment, first_ordinal, records) VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .bind(job)
    .bind(chunk.part)
    .bind(chunk.segment)
    .bind(chunk.first_ordinal + half)
    .bind(chunk.records - half)
    .execute(&mut *conn)
    .await?;
    Ok(true)
}

pub(in crate::store) async fn in_order_after(
    conn: &mut SqliteConnection,
    job: Id,
    after: (i32, i32, i32),
    limit: i64,
) -> Result<Vec<Chunk>> {
    Ok(sqlx::query_as(
        "SELECT part, segment, first_ordinal, records, attempts FROM chunks
            WHERE job_id = ?1 AND (part, segment, first_ordinal) > (?2, ?3, ?4)
            ORDER BY part, segment, first_ordinal LIMIT ?5",
    )
    .bind(job)
    .bind(after.0)
    .bind(after.1)
    .bind(after.2)
    .bind(limit)
    .fetch_all(&mut *conn)
    .await?)
}

pub(in crate::store) async fn any_ready(conn: &mut SqliteConnection, job: Id, part: i32) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM chunks WHERE job_id = ?1 AND part = ?2 AND status = 'ready')",
    )
    .bind(job)
    .bind(part)
    .fetch_one(&mut *conn)
    .await?)
}
