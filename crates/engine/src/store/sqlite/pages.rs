use db::{Id, Result};
use sqlx::SqliteConnection;

use crate::Position;
use crate::staging;
use crate::store::pages::{BlockRow, Commit, FEWER_THAN_COUNTED};
use crate::store::small;

/// Places of a segment in `staged_pages`: its stage times this, and so many from there.
const STAGE: i64 = 16_777_216;

pub(in crate::store) async fn commit(conn: &mut SqliteConnection, page: &Commit) -> Result<bool> {
    let count = small(page.records.len());
    let to = page.stored_to();
    let moved = sqlx::query(
            "UPDATE partitions SET
                position = ?5,
                status = CASE WHEN ?6 THEN 'ended' ELSE status END,
                segment = CASE WHEN ?7 THEN segment + 1 ELSE segment END,
                anchor = CASE WHEN ?7 THEN ?5 ELSE anchor END,
                staged = CASE WHEN ?7 THEN 0 ELSE staged + ?8 END,
                chunked = CASE WHEN ?7 THEN 0 ELSE COALESCE(?9, chunked) END,
                pages = pages + ?10, records = records + ?8, retries = retries + ?11,
                run_records = run_records + ?8,
                expected = COALESCE(?15, expected),
                lease_until = CASE WHEN ?6 THEN NULL ELSE CAST(unixepoch('subsec') * 1000000 AS INTEGER) + ?12 * 1000000 END,
                holder = CASE WHEN ?6 THEN NULL ELSE holder END
            WHERE job_id = ?1 AND part = ?2 AND epoch = ?3 AND position = ?4 AND segment = ?13 AND staged = ?14
                AND status = 'fetching'
                AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND status = 'cancelled')",
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
        .execute(&mut *conn)
        .await?;
    if moved.rows_affected() != 1 {
        return Ok(false);
    }
    let stage = insert_segment(conn, page, count).await?;
    insert_records(conn, page, stage).await?;
    for chunk in &page.chunks {
        sqlx::query(
            "INSERT INTO chunks (job_id, part, segment, first_ordinal, records) VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .bind(page.job.0)
        .bind(page.part)
        .bind(page.segment)
        .bind(chunk.first_ordinal)
        .bind(chunk.records)
        .execute(&mut *conn)
        .await?;
    }
    if page.to == Position::End {
        note_shortfall(conn, page).await?;
    }
    Ok(true)
}

/// The partition has ended: says so if the source counts more. Told once, because a partition ends once; before the notes
/// of its records, so that it is among those shown.
async fn note_shortfall(conn: &mut SqliteConnection, page: &Commit) -> Result<()> {
    sqlx::query(
        "INSERT INTO notes (job_id, part, segment, ordinal, label, outcome, code, detail)
        SELECT job_id, part, -1, -1, key, 'partial', ?3,
            key || ': the source counts ' || expected || ' records, of which ' || records || ' arrived'
        FROM partitions WHERE job_id = ?1 AND part = ?2 AND records < expected",
    )
    .bind(page.job.0)
    .bind(page.part)
    .bind(FEWER_THAN_COUNTED)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

/// Returns the segment's stage.
async fn insert_segment(conn: &mut SqliteConnection, page: &Commit, count: i32) -> Result<i64> {
    let stage = sqlx::query_scalar(
        "INSERT INTO segments AS s
            (job_id, part, segment, run, anchor, pages, records, bytes, retries, fetch_micros, status, closed_at, stage)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
            CASE WHEN ?11 THEN 'closed' ELSE 'open' END, CASE WHEN ?11 THEN CAST(unixepoch('subsec') * 1000000 AS INTEGER) END,
            1 + MAX(COALESCE((SELECT MAX(stage) FROM segments), 0),
                COALESCE((SELECT MAX(place) FROM staged_pages) / 16777216, 0)))
        ON CONFLICT (job_id, part, segment) DO UPDATE SET
            pages = s.pages + excluded.pages, records = s.records + excluded.records,
            bytes = s.bytes + excluded.bytes, retries = s.retries + excluded.retries,
            fetch_micros = s.fetch_micros + excluded.fetch_micros,
            status = excluded.status, closed_at = excluded.closed_at
        RETURNING stage",
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
    .fetch_one(&mut *conn)
    .await?;
    let pages: Vec<(String, i32)> =
        page.pages.iter().map(|(position, records)| (position.to_stored(), *records)).collect();
    sqlx::query(
        "INSERT INTO pages (job_id, part, segment, page, position, records)
        SELECT ?1, ?2, ?3, ?4 + p.key, p.value ->> 0, p.value ->> 1 FROM json_each(?5) AS p",
    )
    .bind(page.job.0)
    .bind(page.part)
    .bind(page.segment)
    .bind(page.first_page)
    .bind(serde_json::to_string(&pages).expect("texts and numbers are JSON"))
    .execute(&mut *conn)
    .await?;
    Ok(stage)
}

/// The records of all these pages are one row.
async fn insert_records(conn: &mut SqliteConnection, page: &Commit, stage: i64) -> Result<()> {
    if page.records.is_empty() {
        return Ok(());
    }
    if i64::from(page.staged_before) + i64::from(small(page.records.len())) > STAGE {
        let text = format!("no segment holds more than {STAGE} records");
        return Err(db::Error::Other(sqlx::Error::Protocol(text)));
    }
    sqlx::query("INSERT INTO staged_pages (place, records, block) VALUES (?1 * 16777216 + ?2, ?3, ?4)")
        .bind(stage)
        .bind(page.staged_before)
        .bind(small(page.records.len()))
        .bind(staging::pack(&page.records))
        .execute(&mut *conn)
        .await?;
    Ok(())
}

pub(in crate::store) async fn flush_chunk(
    conn: &mut SqliteConnection,
    job: Id,
    part: i32,
    epoch: i64,
) -> Result<bool> {
    let done = sqlx::query(
        "INSERT INTO chunks (job_id, part, segment, first_ordinal, records)
            SELECT job_id, part, segment, chunked, staged - chunked FROM partitions
            WHERE job_id = ?1 AND part = ?2 AND epoch = ?3 AND staged > chunked",
    )
    .bind(job)
    .bind(part)
    .bind(epoch)
    .execute(&mut *conn)
    .await?;
    sqlx::query("UPDATE partitions SET chunked = staged WHERE job_id = ?1 AND part = ?2 AND epoch = ?3")
        .bind(job)
        .bind(part)
        .bind(epoch)
        .execute(&mut *conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub(in crate::store) async fn resume(
    conn: &mut SqliteConnection,
    job: Id,
    part: i32,
    segment: i32,
) -> Result<(Vec<String>, Vec<BlockRow>)> {
    let visited = sqlx::query_scalar(
        "SELECT position FROM pages WHERE job_id = ?1 AND part = ?2 AND segment = ?3 ORDER BY page",
    )
    .bind(job)
    .bind(part)
    .bind(segment)
    .fetch_all(&mut *conn)
    .await?;
    let blocks = sqlx::query_as(
        "SELECT r.place - s.stage * 16777216, r.block FROM segments s
            JOIN staged_pages r ON r.place >= s.stage * 16777216 AND r.place < (s.stage + 1) * 16777216
            WHERE s.job_id = ?1 AND s.part = ?2 AND s.segment = ?3 ORDER BY r.place",
    )
    .bind(job)
    .bind(part)
    .bind(segment)
    .fetch_all(&mut *conn)
    .await?;
    Ok((visited, blocks))
}

pub(in crate::store) async fn backlog(conn: &mut SqliteConnection, job: Id) -> Result<(i64, i64)> {
    Ok(sqlx::query_as(
        "SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM segments
            WHERE job_id = ?1 AND status <> 'cleaned'",
    )
    .bind(job)
    .fetch_one(&mut *conn)
    .await?)
}

pub(in crate::store) async fn records(
    conn: &mut SqliteConnection,
    job: Id,
    part: i32,
    segment: i32,
    first: i32,
    end: i32,
) -> Result<Vec<BlockRow>> {
    Ok(sqlx::query_as(
        "SELECT r.place - s.stage * 16777216, r.block FROM segments s
            JOIN staged_pages r ON r.place < s.stage * 16777216 + ?5 AND r.place >= s.stage * 16777216
                AND r.place >= COALESCE((SELECT MAX(place) FROM staged_pages WHERE place <= s.stage * 16777216 + ?4), 0)
            WHERE s.job_id = ?1 AND s.part = ?2 AND s.segment = ?3 ORDER BY r.place",
    )
    .bind(job)
    .bind(part)
    .bind(segment)
    .bind(first)
    .bind(end)
    .fetch_all(&mut *conn)
    .await?)
}

pub(in crate::store) async fn any_cleanable(conn: &mut SqliteConnection, job: Id) -> Result<bool> {
    Ok(sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM segments s
                WHERE s.job_id = ?1 AND s.status = 'closed'
                    AND s.records = (
                        SELECT COALESCE(SUM(c.records), 0) FROM chunks c
                        WHERE c.job_id = ?1 AND c.part = s.part AND c.segment = s.segment AND c.status = 'settled'))",
        )
        .bind(job)
        .fetch_one(&mut *conn)
        .await?)
}

pub(in crate::store) async fn clean(conn: &mut SqliteConnection, job: Id) -> Result<i64> {
    let done: Vec<(i32, i32, i64)> = sqlx::query_as(
        "SELECT s.part, s.segment, s.stage FROM segments s
        WHERE s.job_id = ?1 AND s.status = 'closed'
            AND s.records = (
                SELECT COALESCE(SUM(c.records), 0) FROM chunks c
                WHERE c.job_id = ?1 AND c.part = s.part AND c.segment = s.segment AND c.status = 'settled')",
    )
    .bind(job)
    .fetch_all(&mut *conn)
    .await?;
    for (part, segment, stage) in &done {
        let gone: Vec<i64> = sqlx::query_scalar(
            "DELETE FROM staged_pages WHERE place >= ?1 * 16777216 AND place < (?1 + 1) * 16777216 RETURNING records",
        )
        .bind(stage)
        .fetch_all(&mut *conn)
        .await?;
        sqlx::query("DELETE FROM pages WHERE job_id = ?1 AND part = ?2 AND segment = ?3")
            .bind(job)
            .bind(part)
            .bind(segment)
            .execute(&mut *conn)
            .await?;
        sqlx::query(
            "UPDATE segments SET status = 'cleaned', cleaned = ?4,
                cleaned_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
            WHERE job_id = ?1 AND part = ?2 AND segment = ?3",
        )
        .bind(job)
        .bind(part)
        .bind(segment)
        .bind(gone.iter().sum::<i64>())
        .execute(&mut *conn)
        .await?;
    }
    Ok(i64::try_from(done.len()).unwrap_or(i64::MAX))
}
