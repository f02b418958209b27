use db::{Id, Pg, Result};

use crate::store::history::{Block, Note, Quarantined, SegmentLine};

pub(in crate::store) async fn segments(pg: &mut Pg<'_>, job: Id) -> Result<Vec<SegmentLine>> {
    Ok(pg
        .query_as(
            "SELECT s.part, s.segment, s.run, s.status, s.pages, s.records, s.bytes,
                COALESCE(SUM(c.imported), 0)::BIGINT AS imported, COALESCE(SUM(c.updated), 0)::BIGINT AS updated,
                COALESCE(SUM(c.unchanged), 0)::BIGINT AS unchanged, COALESCE(SUM(c.skipped), 0)::BIGINT AS skipped,
                COALESCE(SUM(c.filtered), 0)::BIGINT AS filtered,
                COALESCE(SUM(c.duplicate_in_source), 0)::BIGINT AS duplicate_in_source,
                COALESCE(SUM(c.failed), 0)::BIGINT AS failed, COALESCE(SUM(c.targets), 0)::BIGINT AS targets,
                (s.retries + COALESCE(SUM(c.retries), 0))::BIGINT AS retries, s.cleaned, s.fetch_micros,
                COALESCE(SUM(c.process_micros), 0)::BIGINT AS process_micros,
                s.started_at, s.closed_at, s.cleaned_at
            FROM crossdock.segments s
            LEFT JOIN crossdock.chunks c ON c.job_id = s.job_id AND c.part = s.part AND c.segment = s.segment
            WHERE s.job_id = $1 GROUP BY s.job_id, s.part, s.segment ORDER BY s.part, s.segment",
        )
        .bind(job)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn notes(pg: &mut Pg<'_>, job: Id, limit: i64) -> Result<Vec<Note>> {
    Ok(pg
        .query_as(
            "SELECT part, segment, ordinal, source_id, label, outcome, code, detail FROM crossdock.notes
            WHERE job_id = $1 ORDER BY segment >= 0, part, segment, ordinal LIMIT $2",
        )
        .bind(job)
        .bind(limit)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn quarantined(
    pg: &mut Pg<'_>,
    job: Id,
    after: (i32, i32, i32),
    limit: i64,
) -> Result<Vec<Quarantined>> {
    Ok(pg
        .query_as(
            "SELECT part, segment, ordinal, source_id, label, code, detail, raw, quarantined_at
            FROM crossdock.quarantine
            WHERE job_id = $1 AND (part, segment, ordinal) > ($2, $3, $4)
            ORDER BY part, segment, ordinal LIMIT $5",
        )
        .bind(job)
        .bind(after.0)
        .bind(after.1)
        .bind(after.2)
        .bind(limit)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(in crate::store) async fn blocks(
    pg: &mut Pg<'_>,
    job: Id,
    after: (i32, i32, i32),
    limit: i64,
) -> Result<Vec<Block>> {
    Ok(pg
        .query_as(
            "SELECT part, segment, first_ordinal, block FROM crossdock.manifest_blocks
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

pub(in crate::store) async fn reason_codes(
    pg: &mut Pg<'_>,
    job: Id,
    limit: i64,
) -> Result<Vec<(String, i64)>> {
    Ok(pg
        .query_as(
            "SELECT code, COUNT(*) FROM crossdock.quarantine WHERE job_id = $1
            GROUP BY code ORDER BY COUNT(*) DESC, code LIMIT $2",
        )
        .bind(job)
        .bind(limit)
        .fetch_all(&mut *pg.conn)
        .await?)
}
