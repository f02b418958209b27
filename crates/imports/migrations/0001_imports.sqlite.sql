-- Tokens of vendors, kept only where an import repeats by itself. One-shot imports never write here.
CREATE TABLE service_tokens (
    id INTEGER PRIMARY KEY,
    workspace_id INTEGER NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    vendor TEXT NOT NULL,
    name TEXT NOT NULL,
    -- Encrypted with the server's key; the plain token is nowhere in the database.
    sealed BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- What makes a job of the engine an import. The engine owns the job's state and counters.
CREATE TABLE import_parameters (
    job_id INTEGER PRIMARY KEY REFERENCES jobs ON DELETE CASCADE,
    workspace_id INTEGER NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    source_vendor TEXT NOT NULL,
    source_token_id INTEGER REFERENCES service_tokens ON DELETE SET NULL,
    target_domain_id INTEGER NOT NULL REFERENCES domains ON DELETE CASCADE,
    conflict_strategy TEXT NOT NULL DEFAULT 'suffix' CHECK (conflict_strategy IN ('suffix', 'skip', 'fail')),
    source_filter TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE INDEX import_parameters_workspace ON import_parameters (workspace_id, job_id DESC);

-- One row for each import, whichever the source.
CREATE VIEW import_jobs AS
SELECT p.job_id AS id, p.workspace_id, p.source_vendor, p.source_token_id, p.target_domain_id, j.status,
    p.conflict_strategy, p.source_filter,
    (SELECT COALESCE(SUM(expected), SUM(records), 0) FROM partitions WHERE job_id = p.job_id) AS total_items,
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
