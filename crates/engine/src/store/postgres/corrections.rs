use db::{Id, Pg, Result};

use crate::Counts;
use crate::store::chunks::Key;

pub(in crate::store) async fn begin(pg: &mut Pg<'_>, job: Id, key: &str) -> Result<(i32, i32)> {
    pg.query(
        "INSERT INTO crossdock.partitions (job_id, part, key, expected, status, anchor, position)
        SELECT $1, COALESCE(MAX(part) + 1, 0), $2, 0, 'ended', '1:end', '1:end' FROM crossdock.partitions
        WHERE job_id = $1 HAVING COUNT(*) FILTER (WHERE key = $2) = 0",
    )
    .bind(job)
    .bind(key)
    .execute(&mut *pg.conn)
    .await?;
    Ok(pg
        .query_as(
            "WITH line AS (
                UPDATE crossdock.partitions SET segment = segment + 1 WHERE job_id = $1 AND key = $2
                RETURNING part, segment - 1 AS segment)
            INSERT INTO crossdock.segments (job_id, part, segment, run, status, anchor, closed_at, cleaned_at)
            SELECT $1, part, segment, (SELECT run FROM crossdock.jobs WHERE id = $1), 'cleaned', '1:end',
                clock_timestamp(), clock_timestamp() FROM line
            RETURNING part, segment",
        )
        .bind(job)
        .bind(key)
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn add(
    pg: &mut Pg<'_>,
    job: Id,
    key: Key,
    counts: &Counts,
    process_micros: i64,
    block: Option<&[u8]>,
) -> Result<()> {
    pg.query(
        "INSERT INTO crossdock.chunks (job_id, part, segment, first_ordinal, records, status, settled_at, imported, updated,
            unchanged, skipped, filtered, duplicate_in_source, failed, targets, process_micros)
        VALUES ($1, $2, $3, $4, 0, 'settled', clock_timestamp(), $5, $6, $7, $8, $9, $10, $11, $12, $13)",
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
    .execute(&mut *pg.conn)
    .await?;
    if let Some(block) = block {
        pg.query(
            "INSERT INTO crossdock.manifest_blocks (job_id, part, segment, first_ordinal, block)
            VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(job)
        .bind(key.0)
        .bind(key.1)
        .bind(key.2)
        .bind(block)
        .execute(&mut *pg.conn)
        .await?;
    }
    Ok(())
}

pub(in crate::store) async fn has(pg: &mut Pg<'_>, job: Id, key: Key) -> Result<bool> {
    Ok(pg
        .scalar(
            "SELECT EXISTS (SELECT 1 FROM crossdock.chunks
            WHERE job_id = $1 AND part = $2 AND segment = $3 AND first_ordinal = $4 AND records = 0)",
        )
        .bind(job)
        .bind(key.0)
        .bind(key.1)
        .bind(key.2)
        .fetch_one(&mut *pg.conn)
        .await?)
}
