use db::{Id, Pg, Result};

use crate::Position;
use crate::staging;
use crate::store::pages::{BlockRow, Commit, FEWER_THAN_COUNTED};
use crate::store::small;

pub(in crate::store) async fn commit(pg: &mut Pg<'_>, page: &Commit) -> Result<bool> {
    let count = small(page.records.len());
    let to = page.stored_to();
    let moved = pg
        .query(
            "UPDATE crossdock.partitions SET
                position = $5,
                status = CASE WHEN $6 THEN 'ended' ELSE status END,
                segment = CASE WHEN $7 THEN segment + 1 ELSE segment END,
                anchor = CASE WHEN $7 THEN $5 ELSE anchor END,
                staged = CASE WHEN $7 THEN 0 ELSE staged + $8 END,
                chunked = CASE WHEN $7 THEN 0 ELSE COALESCE($9, chunked) END,
                pages = pages + $10, records = records + $8, retries = retries + $11,
                run_records = run_records + $8,
                expected = COALESCE($15::BIGINT, expected),
                lease_until = CASE WHEN $6 THEN NULL ELSE clock_timestamp() + make_interval(secs => $12) END,
                holder = CASE WHEN $6 THEN NULL ELSE holder END
            WHERE job_id = $1 AND part = $2 AND epoch = $3 AND position = $4 AND segment = $13 AND staged = $14
                AND status = 'fetching'
                AND NOT EXISTS (SELECT 1 FROM crossdock.jobs WHERE id = $1 AND status = 'cancelled')",
        )
        .bind(page.job.0)
        .bind(page.part)
        .bind(page.epoch)
        .bind(page.from.to_stored())
        .bind(&to)
        .bind(page.to == Position::End)
        .bind(page.close)
        .bind(count)
        .bind(page.chunked())
        .bind(i64::from(small(page.pages.len())))
        .bind(page.retries)
        .bind(page.lease_seconds)
        .bind(page.segment)
        .bind(page.staged_before)
        .bind(page.total)
        .execute(&mut *pg.conn)
        .await?;
    if moved.rows_affected() != 1 {
        return Ok(false);
    }
    insert_segment(pg, page, count).await?;
    insert_records(pg, page).await?;
    for chunk in &page.chunks {
        pg.query(
            "INSERT INTO crossdock.chunks (job_id, part, segment, first_ordinal, records) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(page.job.0)
        .bind(page.part)
        .bind(page.segment)
        .bind(chunk.first_ordinal)
        .bind(chunk.records)
        .execute(&mut *pg.conn)
        .await?;
    }
    if page.to == Position::End {
        note_shortfall(pg, page).await?;
    }
    Ok(true)
}

/// The partition has ended: says so if the source counts more. Told once, because a partition ends once; before the notes
/// of its records, so that it is among those shown.
async fn note_shortfall(pg: &mut Pg<'_>, page: &Commit) -> Result<()> {
    pg.query(
        "INSERT INTO crossdock.notes (job_id, part, segment, ordinal, label, outcome, code, detail)
        SELECT job_id, part, -1, -1, key, 'partial', $3,
            key || ': the source counts ' || expected || ' records, of which ' || records || ' arrived'
        FROM crossdock.partitions WHERE job_id = $1 AND part = $2 AND records < expected",
    )
    .bind(page.job.0)
    .bind(page.part)
    .bind(FEWER_THAN_COUNTED)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

async fn insert_segment(pg: &mut Pg<'_>, page: &Commit, count: i32) -> Result<()> {
    pg.query(
        "INSERT INTO crossdock.segments AS s
            (job_id, part, segment, run, anchor, pages, records, bytes, retries, fetch_micros, status, closed_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
            CASE WHEN $11 THEN 'closed' ELSE 'open' END, CASE WHEN $11 THEN clock_timestamp() END)
        ON CONFLICT (job_id, part, segment) DO UPDATE SET
            pages = s.pages + excluded.pages, records = s.records + excluded.records,
            bytes = s.bytes + excluded.bytes, retries = s.retries + excluded.retries,
            fetch_micros = s.fetch_micros + excluded.fetch_micros,
            status = excluded.status, closed_at = excluded.closed_at",
    )
    .bind(page.job.0)
    .bind(page.part)
    .bind(page.segment)
    .bind(page.run)
    .bind(&page.anchor)
    .bind(small(page.pages.len()))
    .bind(count)
    .bind(page.bytes())
    .bind(page.retries)
    .bind(page.fetch_micros)
    .bind(page.close)
    .execute(&mut *pg.conn)
    .await?;
    let positions: Vec<String> = page.pages.iter().map(|(position, _)| position.to_stored()).collect();
    let records: Vec<i32> = page.pages.iter().map(|(_, records)| *records).collect();
    pg.query(
        "INSERT INTO crossdock.pages (job_id, part, segment, page, position, records)
        SELECT $1, $2, $3, $4 + p.n::INTEGER - 1, p.position, p.records
        FROM unnest($5::TEXT[], $6::INTEGER[]) WITH ORDINALITY AS p (position, records, n)",
    )
    .bind(page.job.0)
    .bind(page.part)
    .bind(page.segment)
    .bind(page.first_page)
    .bind(positions)
    .bind(records)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

/// The records of all these pages are one row.
async fn insert_records(pg: &mut Pg<'_>, page: &Commit) -> Result<()> {
    if page.records.is_empty() {
        return Ok(());
    }
    pg.query(
        "INSERT INTO crossdock.staged_pages (job_id, part, segment, first_ordinal, records, block)
        VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(page.job.0)
    .bind(page.part)
    .bind(page.segment)
    .bind(page.staged_before)
    .bind(small(page.records.len()))
    .bind(staging::pack(&page.records))
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

pub(in crate::store) async fn flush_chunk(pg: &mut Pg<'_>, job: Id, part: i32, epoch: i64) -> Result<bool> {
    let done = pg
        .query(
            "WITH tail AS (
                SELECT job_id, part, segment, chunked, staged FROM crossdock.partitions
                WHERE job_id = $1 AND part = $2 AND epoch = $3 AND staged > chunked FOR UPDATE),
            chunk AS (
                INSERT INTO crossdock.chunks (job_id, part, segment, first_ordinal, records)
                SELECT job_id, part, segment, chunked, staged - chunked FROM tail)
            UPDATE crossdock.partitions p SET chunked = tail.staged FROM tail
            WHERE p.job_id = tail.job_id AND p.part = tail.part",
        )
        .bind(job)
        .bind(part)
        .bind(epoch)
        .execute(&mut *pg.conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(in crate::store) async fn resume(
    pg: &mut Pg<'_>,
    job: Id,
    part: i32,
    segment: i32,
) -> Result<(Vec<String>, Vec<BlockRow>)> {
    let visited = pg
        .scalar("SELECT position FROM crossdock.pages WHERE job_id = $1 AND part = $2 AND segment = $3 ORDER BY page")
        .bind(job)
        .bind(part)
        .bind(segment)
        .fetch_all(&mut *pg.conn)
        .await?;
    let blocks = pg
        .query_as(
            "SELECT first_ordinal, block FROM crossdock.staged_pages
            WHERE job_id = $1 AND part = $2 AND segment = $3 ORDER BY first_ordinal",
        )
        .bind(job)
        .bind(part)
        .bind(segment)
        .fetch_all(&mut *pg.conn)
        .await?;
    Ok((visited, blocks))
}

pub(in crate::store) async fn backlog(pg: &mut Pg<'_>, job: Id) -> Result<(i64, i64)> {
    Ok(pg
        .query_as(
            "SELECT COUNT(*), COALESCE(SUM(bytes), 0)::BIGINT FROM crossdock.segments
            WHERE job_id = $1 AND status <> 'cleaned'",
        )
        .bind(job)
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn records(
    pg: &mut Pg<'_>,
    job: Id,
    part: i32,
    segment: i32,
    first: i32,
    end: i32,
) -> Result<Vec<BlockRow>> {
    Ok(pg
        .query_as(
            "SELECT first_ordinal, block FROM crossdock.staged_pages
            WHERE job_id = $1 AND part = $2 AND segment = $3 AND first_ordinal < $5 AND first_ordinal >= (
                SELECT COALESCE(MAX(first_ordinal), 0) FROM crossdock.staged_pages
                WHERE job_id = $1 AND part = $2 AND segment = $3 AND first_ordinal <= $4)
            ORDER BY first_ordinal",
        )
        .bind(job)
        .bind(part)
        .bind(segment)
        .bind(first)
        .bind(end)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn any_cleanable(pg: &mut Pg<'_>, job: Id) -> Result<bool> {
    Ok(pg
        .scalar(
            "SELECT EXISTS (SELECT 1 FROM crossdock.segments s
                WHERE s.job_id = $1 AND s.status = 'closed'
                    AND s.records = (
                        SELECT COALESCE(SUM(c.records), 0) FROM crossdock.chunks c
                        WHERE c.job_id = $1 AND c.part = s.part AND c.segment = s.segment AND c.status = 'settled'))",
        )
        .bind(job)
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn clean(pg: &mut Pg<'_>, job: Id) -> Result<i64> {
    let done = pg
        .query(
            "WITH done AS (
                SELECT s.part, s.segment FROM crossdock.segments s
                WHERE s.job_id = $1 AND s.status = 'closed'
                    AND s.records = (
                        SELECT COALESCE(SUM(c.records), 0) FROM crossdock.chunks c
                        WHERE c.job_id = $1 AND c.part = s.part AND c.segment = s.segment AND c.status = 'settled')
                FOR UPDATE SKIP LOCKED),
            gone AS (
                DELETE FROM crossdock.staged_pages r USING done d
                WHERE r.job_id = $1 AND r.part = d.part AND r.segment = d.segment
                RETURNING r.part, r.segment, r.records),
            pages AS (
                DELETE FROM crossdock.pages p USING done d
                WHERE p.job_id = $1 AND p.part = d.part AND p.segment = d.segment)
            UPDATE crossdock.segments s SET status = 'cleaned', cleaned_at = clock_timestamp(),
                cleaned = (SELECT COALESCE(SUM(g.records), 0) FROM gone g WHERE g.part = s.part AND g.segment = s.segment)
            FROM done d WHERE s.job_id = $1 AND s.part = d.part AND s.segment = d.segment",
        )
        .bind(job)
        .execute(&mut *pg.conn)
        .await?;
    Ok(i64::try_from(done.rows_affected()).unwrap_or(i64::MAX))
}
