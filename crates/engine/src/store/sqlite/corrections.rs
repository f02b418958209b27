use db::{Id, Result};
use sqlx::SqliteConnection;

use crate::Counts;
use crate::store::chunks::Key;

pub(in crate::store) async fn begin(conn: &mut SqliteConnection, job: Id, key: &str) -> Result<(i32, i32)> {
    sqlx::query(
        "INSERT INTO partitions (job_id, part, key, expected, status, anchor, position)
        SELECT ?1, COALESCE(MAX(part) + 1, 0), ?2, 0, 'ended', '1:end', '1:end' FROM partitions
        WHERE job_id = ?1 HAVING COUNT(*) FILTER (WHERE key = ?2) = 0",
    )
    .bind(job)
    .bind(key)
    .execute(&mut *conn)
    .await?;
    let (part, segment): (i32, i32) = sqlx::query_as(
        "UPDATE partitions SET segment = segment + 1 WHERE job_id = ?1 AND key = ?2 RETURNING part, segment - 1",
    )
    .bind(job)
    .bind(key)
    .fetch_one(&mut *conn)
    .await?;
    sqlx::query(
        "INSERT INTO segments (job_id, part, segment, stage, run, status, anchor, closed_at, cleaned_at)
        SELECT ?1, ?2, ?3,
            1 + MAX(COALESCE((SELECT MAX(stage) FROM segments), 0),
                COALESCE((SELECT MAX(place) FROM staged_pages) / 16777216, 0)),
            run, 'cleaned', '1:end', CAST(unixepoch('subsec') * 1000000 AS INTEGER),
            CAST(unixepoch('subsec') * 1000000 AS INTEGER)
        FROM jobs WHERE id = ?1",
    )
    .bind(job)
    .bind(part)
    .bind(segment)
    .execute(&mut *conn)
    .await?;
    Ok((part, segment))
}

pub(in crate::store) async fn add(
    conn: &mut SqliteConnection,
    job: Id,
    key: Key,
    counts: &Counts,
    process_micros: i64,
    block: Option<&[u8]>,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO chunks (job_id, part, segment, first_ordinal, records, status, settled_at, imported, updated,
            unchanged, skipped, filtered, duplicate_in_source, failed, targets, process_micros)
        VALUES (?1, ?2, ?3, ?4, 0, 'settled', CAST(unixepoch('subsec') * 1000000 AS INTEGER), ?5, ?6, ?7, ?8, ?9, ?10, ?11,
            ?12, ?13)",
    )
    .bind(job)
    .bind(key.0)
    .bind(key.1)
    .bind(key.2)
    .bind(counts.imported)
    .bind(counts.updated)
    .bind(counts.unchanged)
    .bind(counts.skipped)
    .bind(counts.filtered)
    .bind(counts.duplicate_in_source)
    .bind(counts.failed)
    .bind(counts.targets)
    .bind(process_micros)
    .execute(&mut *conn)
    .await?;
    if let Some(block) = block {
        sqlx::query(
            "INSERT INTO manifest_blocks (job_id, part, segment, first_ordinal, block) VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .bind(job)
        .bind(key.0)
        .bind(key.1)
        .bind(key.2)
        .bind(block)
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

pub(in crate::store) async fn has(conn: &mut SqliteConnection, job: Id, key: Key) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM chunks
        WHERE job_id = ?1 AND part = ?2 AND segment = ?3 AND first_ordinal = ?4 AND records = 0)",
    )
    .bind(job)
    .bind(key.0)
    .bind(key.1)
    .bind(key.2)
    .fetch_one(&mut *conn)
    .await?)
}
