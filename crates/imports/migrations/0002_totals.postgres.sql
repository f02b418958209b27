-- total_items is what the source counts, once it has told that of each part: a sum over some parts looks like the whole.
DROP VIEW import_jobs;
CREATE VIEW import_jobs AS
SELECT p.job_id AS id, p.workspace_id, p.source_vendor, p.source_token_id, p.target_domain_id, j.status,
    p.conflict_strategy, p.source_filter,
    COALESCE(f.expected, f.fetched, 0)::BIGINT AS total_items,
    COALESCE(c.imported, 0)::BIGINT AS imported_items, COALESCE(c.updated, 0)::BIGINT AS updated_items,
    COALESCE(c.unchanged, 0)::BIGINT AS unchanged_items, COALESCE(c.skipped, 0)::BIGINT AS skipped_items,
    COALESCE(c.filtered, 0)::BIGINT AS filtered_items, COALESCE(c.duplicates, 0)::BIGINT AS duplicate_items,
    COALESCE(c.failed, 0)::BIGINT AS failed_items, COALESCE(c.slugs, 0)::BIGINT AS slugs,
    COALESCE((SELECT jsonb_agg(jsonb_build_object('source_id', n.source_id, 'source_slug', n.label, 'reason', n.code)
            ORDER BY n.part, n.segment, n.ordinal)
        FROM crossdock.notes n WHERE n.job_id = p.job_id AND n.code <> 'left_behind'), '[]'::JSONB) AS error_log,
    j.created_at, j.started_at, j.last_progress_at, j.finished_at,
    CASE WHEN j.status = 'failed' THEN j.reason END AS failure_reason
FROM import_parameters p
JOIN crossdock.jobs j ON j.id = p.job_id
LEFT JOIN LATERAL (
    SELECT CASE WHEN COUNT(*) = COUNT(expected) THEN SUM(expected) END AS expected, SUM(records) AS fetched
    FROM crossdock.partitions WHERE job_id = p.job_id AND status <> 'left_out') f
    ON TRUE
LEFT JOIN LATERAL (
    SELECT SUM(imported) AS imported, SUM(updated) AS updated, SUM(unchanged) AS unchanged, SUM(skipped) AS skipped,
        SUM(filtered) AS filtered, SUM(duplicate_in_source) AS duplicates, SUM(failed) AS failed, SUM(targets) AS slugs
    FROM crossdock.chunks WHERE job_id = p.job_id) c ON TRUE;
