use db::{Id, Pg, Result};

use crate::Outcome;
use crate::store::chunks::{Chunk, Key, Settlement, rows_json};

pub(in crate::store) async fn any_due(pg: &mut Pg<'_>, job: Id, serial: bool) -> Result<bool> {
    let low: Option<i32> = pg
        .scalar(
            "SELECT low.part FROM (
                SELECT part FROM crossdock.chunks
                WHERE job_id = $1 AND status = 'ready' ORDER BY part, segment, first_ordinal LIMIT 1) low
            WHERE NOT $2 OR NOT EXISTS (
                SELECT 1 FROM crossdock.partitions p
                WHERE p.job_id = $1 AND p.part < low.part AND p.status = 'fetching')",
        )
        .bind(job)
        .bind(serial)
        .fetch_optional(&mut *pg.conn)
        .await?;
    Ok(low.is_some())
}

pub(in crate::store) async fn attempt(
    pg: &mut Pg<'_>,
    job: Id,
    serial: bool,
    busy: &[Key],
) -> Result<Option<Chunk>> {
    if serial {
        if !take_turn(pg, job).await? {
            return Ok(None);
        }
        return Ok(pg
            .query_as(
                "UPDATE crossdock.chunks c SET attempts = c.attempts + 1
                FROM (
                    SELECT part, segment, first_ordinal FROM crossdock.chunks
                    WHERE job_id = $1 AND status = 'ready' ORDER BY part, segment, first_ordinal LIMIT 1) low
                WHERE c.job_id = $1 AND c.part = low.part AND c.segment = low.segment
                    AND c.first_ordinal = low.first_ordinal AND c.status = 'ready'
                    AND NOT EXISTS (
                        SELECT 1 FROM crossdock.partitions p
                        WHERE p.job_id = $1 AND p.part < low.part AND p.status = 'fetching')
                RETURNING c.part, c.segment, c.first_ordinal, c.records, c.attempts",
            )
            .bind(job)
            .fetch_optional(&mut *pg.conn)
            .await?);
    }
    Ok(pg
        .query_as(
            // Materialised, so that one chunk is picked and no more; see the lease of partitions.
            "WITH low AS MATERIALIZED (
                SELECT part, segment, first_ordinal FROM crossdock.chunks
                WHERE job_id = $1 AND status = 'ready'
                    AND (part, segment, first_ordinal) NOT IN (
                        SELECT * FROM unnest($2::INTEGER[], $3::INTEGER[], $4::INTEGER[]))
                ORDER BY part, segment, first_ordinal LIMIT 1
                FOR UPDATE SKIP LOCKED)
            UPDATE crossdock.chunks c SET attempts = c.attempts + 1
            FROM low WHERE c.job_id = $1 AND c.part = low.part AND c.segment = low.segment
                AND c.first_ordinal = low.first_ordinal
            RETURNING c.part, c.segment, c.first_ordinal, c.records, c.attempts",
        )
        .bind(job)
        .bind(busy.iter().map(|key| key.0).collect::<Vec<i32>>())
        .bind(busy.iter().map(|key| key.1).collect::<Vec<i32>>())
        .bind(busy.iter().map(|key| key.2).collect::<Vec<i32>>())
        .fetch_optional(&mut *pg.conn)
        .await?)
}

/// The row lock that makes the chunks of a serial sink run one at a time over all processes.
pub(in crate::store) async fn take_turn(pg: &mut Pg<'_>, job: Id) -> Result<bool> {
    let turn: Option<i64> = pg
        .scalar("SELECT job_id FROM crossdock.turns WHERE job_id = $1 FOR UPDATE SKIP LOCKED")
        .bind(job)
        .fetch_optional(&mut *pg.conn)
        .await?;
    Ok(turn.is_some())
}

pub(in crate::store) async fn claim(pg: &mut Pg<'_>, job: Id, chunk: &Chunk, serial: bool) -> Result<bool> {
    if serial && !take_turn(pg, job).await? {
        return Ok(false);
    }
    let held: Option<i32> = pg
        .scalar(
            "SELECT 1 FROM crossdock.chunks
            WHERE job_id = $1 AND part = $2 AND segment = $3 AND first_ordinal = $4 AND records = $5
                AND status = 'ready'
                AND EXISTS (SELECT 1 FROM crossdock.jobs WHERE id = $1 AND status = 'running' AND NOT undoing)
            FOR UPDATE SKIP LOCKED",
        )
        .bind(job)
        .bind(chunk.part)
        .bind(chunk.segment)
        .bind(chunk.first_ordinal)
        .bind(chunk.records)
        .fetch_optional(&mut *pg.conn)
        .await?;
    Ok(held.is_some())
}

pub(in crate::store) async fn hold_all(pg: &mut Pg<'_>, job: Id) -> Result<()> {
    pg.query(
        "SELECT 1 FROM crossdock.chunks WHERE job_id = $1 AND status = 'ready'
        ORDER BY part, segment, first_ordinal FOR UPDATE",
    )
    .bind(job)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn forgive(pg: &mut Pg<'_>, job: Id, chunk: &Chunk) -> Result<()> {
    pg.query(
        "UPDATE crossdock.chunks SET attempts = GREATEST(attempts - 1, 0)
        WHERE (job_id, part, segment, first_ordinal) IN (
            SELECT job_id, part, segment, first_ordinal FROM crossdock.chunks
            WHERE job_id = $1 AND part = $2 AND segment = $3 AND first_ordinal = $4 AND status = 'ready'
            FOR UPDATE SKIP LOCKED)",
    )
    .bind(job)
    .bind(chunk.part)
    .bind(chunk.segment)
    .bind(chunk.first_ordinal)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn settle(
    pg: &mut Pg<'_>,
    job: Id,
    chunk: &Chunk,
    settlement: &Settlement,
) -> Result<bool> {
    let counts = &settlement.counts;
    let done = pg
        .query(
            "UPDATE crossdock.chunks SET status = 'settled', settled_at = clock_timestamp(), retries = retries + $5,
                imported = $6, updated = $7, unchanged = $8, skipped = $9, filtered = $10, duplicate_in_source = $11,
                failed = $12, targets = $13, process_micros = $14
            WHERE job_id = $1 AND part = $2 AND segment = $3 AND first_ordinal = $4 AND status = 'ready'",
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
        .execute(&mut *pg.conn)
        .await?;
    if done.rows_affected() != 1 {
        return Ok(false);
    }
    pg.query(
        "INSERT INTO crossdock.manifest_blocks (job_id, part, segment, first_ordinal, block) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(job)
    .bind(chunk.part)
    .bind(chunk.segment)
    .bind(chunk.first_ordinal)
    .bind(&settlement.block)
    .execute(&mut *pg.conn)
    .await?;
    insert_exceptions(pg, job, chunk, settlement).await?;
    Ok(true)
}

async fn insert_exceptions(pg: &mut Pg<'_>, job: Id, chunk: &Chunk, settlement: &Settlement) -> Result<()> {
    if settlement.exceptions.is_empty() {
        return Ok(());
    }
    pg.query(
        "INSERT INTO crossdock.notes (job_id, part, segment, ordinal, source_id, label, outcome, code, detail)
        SELECT $1, $2, $3, (r.row ->> 0)::INTEGER, r.row ->> 1, r.row ->> 2, r.row ->> 3, r.row ->> 4, r.row ->> 5
        FROM jsonb_array_elements($4::TEXT::JSONB) WITH ORDINALITY AS r (row, n)
        WHERE (SELECT COUNT(*) FROM crossdock.notes WHERE job_id = $1) + r.n <= $5",
    )
    .bind(job)
    .bind(chunk.part)
    .bind(chunk.segment)
    .bind(rows_json(settlement.exceptions.iter()))
    .bind(settlement.notes_max)
    .execute(&mut *pg.conn)
    .await?;
    let failed = || settlement.exceptions.iter().filter(|exception| exception.outcome == Outcome::Failed);
    let raws: Vec<&[u8]> = failed().map(|exception| &exception.raw[..]).collect();
    pg.query(
        "INSERT INTO crossdock.quarantine (job_id, part, segment, ordinal, source_id, label, code, detail, raw)
        SELECT $1, $2, $3, (r.row ->> 0)::INTEGER, r.row ->> 1, r.row ->> 2, r.row ->> 4, r.row ->> 5, b.raw
        FROM jsonb_array_elements($4::TEXT::JSONB) WITH ORDINALITY AS r (row, n)
        JOIN unnest($5::BYTEA[]) WITH ORDINALITY AS b (raw, n) USING (n)",
    )
    .bind(job)
    .bind(chunk.part)
    .bind(chunk.segment)
    .bind(rows_json(failed()))
    .bind(raws)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn settled_after_doubt(pg: &mut Pg<'_>, job: Id, chunk: &Chunk) -> Result<bool> {
    let status: Option<String> = pg
        .scalar(
            "SELECT status FROM crossdock.chunks
            WHERE job_id = $1 AND part = $2 AND segment = $3 AND first_ordinal = $4 FOR UPDATE",
        )
        .bind(job)
        .bind(chunk.part)
        .bind(chunk.segment)
        .bind(chunk.first_ordinal)
        .fetch_optional(&mut *pg.conn)
        .await?;
    Ok(status.as_deref() == Some("settled"))
}

pub(in crate::store) async fn split(pg: &mut Pg<'_>, job: Id, chunk: &Chunk) -> Result<bool> {
    let half = chunk.records / 2;
    let done = pg
        .query(
            "UPDATE crossdock.chunks SET records = $6, attempts = 0
            WHERE job_id = $1 AND part = $2 AND segment = $3 AND first_ordinal = $4 AND records = $5 AND status = 'ready'",
        )
        .bind(job)
        .bind(chunk.part)
        .bind(chunk.segment)
        .bind(chunk.first_ordinal)
        .bind(chunk.records)
        .bind(half)
        .execute(&mut *pg.conn)
        .await?;
    if done.rows_affected() != 1 {
        return Ok(false);
    }
    pg.query(
        "INSERT INTO crossdock.chunks (job_id, part, segment, first_ordinal, records) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(job)
    .bind(chunk.part)
    .bind(chunk.segment)
    .bind(chunk.first_ordinal + half)
    .bind(chunk.records - half)
    .execute(&mut *pg.conn)
    .await?;
    Ok(true)
}

pub(in crate::store) async fn in_order_after(
    pg: &mut Pg<'_>,
    job: Id,
    after: (i32, i32, i32),
    limit: i64,
) -> Result<Vec<Chunk>> {
    Ok(pg
        .query_as(
            "SELECT part, segment, first_ordinal, records, attempts FROM crossdock.chunks
            WHERE job_id = $1 AND (part, segment, first_ordinal) > ($2, $3, $4)
            ORDER BY part, segment, first_ordinal LIMIT $5",
        )
        .bind(job)
        .bind(after.0)
        .bind(after.1)
        .bind(after.2)
        .bind(limit)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn any_ready(pg: &mut Pg<'_>, job: Id, part: i32) -> Result<bool> {
    Ok(pg
        .scalar("SELECT EXISTS (SELECT 1 FROM crossdock.chunks WHERE job_id = $1 AND part = $2 AND status = 'ready')")
        .bind(job)
        .bind(part)
        .fetch_one(&mut *pg.conn)
        .await?)
}
