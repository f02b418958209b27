-- total_items is what the source counts, once it has told that of each part: a sum over some parts looks like the whole.
DROP VIEW import_jobs;
CREATE VIEW import_jobs AS
SELECT p.job_id AS id, p.workspace_id, p.source_vendor, p.source_token_id, p.target_domain_id, j.status,
    p.conflict_strategy, p.source_filter,
    (SELECT COALESCE(CASE WHEN COUNT(*) = COUNT(expected) THEN SUM(expected) END, SUM(records), 0)
        FROM partitions WHERE job_id = p.job_id AND status <> 'left_out') AS total_items,
    COALESCE(SUM(c.imported), 0) AS imported_items, COALESCE(SUM(c.updated), 0) AS updated_items,
    COALESCE(SUM(c.unchanged), 0) AS unchanged_items, COALESCE(SUM(c.skipped), 0) AS skipped_items,
    COALESCE(SUM(c.filtered), 0) AS filtered_items, COALESCE(SUM(c.duplicate_in_source), 0) AS duplicate_items,
    COALESCE(SUM(c.failed), 0) AS failed_items, COALESCE(SUM(c.targets), 0) AS slugs,
    -- Ordered by a subquery: ORDER BY inside an aggregate needs SQLite 3.44, and people read this file with older shells.
    COALESCE((SELECT json_group_array(json_object('source_id', source_id, 'source_slug', label, 'reason', code))
        FROM (SELECT n.source_id, n.label, n.code FROM notes n WHERE n.job_id = p.job_id AND n.code <> 'left_behind'
            ORDER BY n.part, n.segment, n.ordinal)), '[]') AS error_log,
    j.created_at, j.started_at, j.last_progress_at, j.finished_at,
    CASE WHEN j.status = 'failed' THEN j.reason END AS failure_reason
FROM import_parameters p
JOIN jobs j ON j.id = p.job_id
LEFT JOIN chunks c ON c.job_id = p.job_id
GROUP BY p.job_id;
