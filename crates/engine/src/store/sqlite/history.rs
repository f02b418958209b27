use db::{Id, Result};
use sqlx::SqliteConnection;

use crate::store::history::{Block, Note, Quarantined, SegmentLine};

pub(in crate::store) async fn segments(conn: &mut SqliteConnection, job: Id) -> Result<Vec<SegmentLine>> {
    Ok(sqlx::query_as(
        "SELECT s.part, s.segment, s.run, s.status, s.pages, s.records, s.bytes,
                COALESCE(SUM(c.imported), 0) AS imported, COALESCE(SUM(c.updated), 0) AS updated,
                COALESCE(SUM(c.unchanged), 0) AS unchanged, COALESCE(SUM(c.skipped), 0) AS skipped,
                COALESCE(SUM(c.filtered), 0) AS filtered,
                COALESCE(SUM(c.duplicate_in_source), 0) AS duplicate_in_source,
                COALESCE(SUM(c.failed), 0) AS failed, COALESCE(SUM(c.targets), 0) AS targets,
                (s.retries + COALESCE(SUM(c.retries), 0)) AS retries, s.cleaned, s.fetch_micros,
                COALESCE(SUM(c.process_micros), 0) AS process_micros,
                s.started_at, s.closed_at, s.cleaned_at
            FROM segments s
            LEFT JOIN chunks c ON c.job_id = s.job_id AND c.part = s.part AND c.segment = s.segment
            WHERE s.job_id = ?1 GROUP BY s.job_id, s.part, s.segment ORDER BY s.part, s.segment",
    )
    .bind(job)
    .fetch_all(&mut *conn)
    .await?)
}

pub(in crate::store) async fn notes(conn: &mut SqliteConnection, job: Id, limit: i64) -> Result<Vec<Note>> {
    Ok(sqlx::query_as(
        "SELECT part, segment, ordinal, source_id, label, outcome, code, detail FROM notes
            WHERE job_id = ?1 ORDER BY segment >= 0, part, segment, ordinal LIMIT ?2",
    )
    .bind(job)
    .bind(limit)
    .fetch_all(&mut *conn)
    .await?)
}

pub(in crate::store) async fn quarantined(
    conn: &mut SqliteConnection,
    job: Id,
    after: (i32, i32, i32),
    limit: i64,
) -> Result<Vec<Quarantined>> {
    Ok(sqlx::query_as(
        "SELECT part, segment, ordinal, source_id, label, code, detail, raw, quarantined_at
            FROM quarantine
            WHERE job_id = ?1 AND (part, segment, ordinal) > (?2, ?3, ?4)
            ORDER BY part, segment, ordinal LIMIT ?5",
    )
    .bind(job)
    .bind(after.0)
    .bind(after.1)
    .bind(after.2)
    .bind(limit)
    .fetch_all(&mut *conn)
    .await?)
}

pub(in crate::store) async fn blocks(
    conn: &mut SqliteConnection,
    job: Id,
    after: (i32, i32, i32),
    limit: i64,
) -> Result<Vec<Block>> {
    Ok(sqlx::query_as(
        "SELECT part, segment, first_ordinal, block FROM manifest_blocks
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

pub(in crate::store) async fn reason_codes(
    conn: &mut SqliteConnection,
    job: Id,
    limit: i64,
) -> Result<Vec<(String, i64)>> {
    Ok(sqlx::query_as(
        "SELECT code, COUNT(*) FROM quarantine WHERE job_id = ?1
        GROUP BY code ORDER BY COUNT(*) DESC, code LIMIT ?2",
    )
    .bind(job)
    .bind(limit)
    .fetch_all(&mut *conn)
    .await?)
}
