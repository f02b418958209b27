-- Tokens of vendors, kept only where an import repeats by itself. One-shot imports never write here.
CREATE TABLE service_tokens (
    id BIGINT PRIMARY KEY,
    workspace_id BIGINT NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    vendor TEXT NOT NULL,
    name TEXT NOT NULL,
    -- Encrypted with the server's key; the plain token is nowhere in the database.
    sealed BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

-- What makes a job of the engine an import. The engine owns the job's state and counters.
CREATE TABLE import_parameters (
    job_id BIGINT PRIMARY KEY REFERENCES crossdock.jobs ON DELETE CASCADE,
    workspace_id BIGINT NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    source_vendor TEXT NOT NULL,
    source_token_id BIGINT REFERENCES service_tokens ON DELETE SET NULL,
    target_domain_id BIGINT NOT NULL REFERENCES domains ON DELETE CASCADE,
    conflict_strategy TEXT NOT NULL DEFAULT 'suffix' CHECK (conflict_strategy IN ('suffix', 'skip', 'fail')),
    source_filter JSONB NOT NULL DEFAULT '{}'
);
CREATE INDEX import_parameters_workspace ON import_parameters (workspace_id, job_id DESC);

-- One row for each import, whichever the source.
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
    SELECT SUM(expected) AS expected, SUM(records) AS fetched FROM crossdock.partitions WHERE job_id = p.job_id) f
    ON TRUE
LEFT JOIN LATERAL (
    SELECT SUM(imported) AS imported, SUM(updated) AS updated, SUM(unchanged) AS unchanged, SUM(skipped) AS skipped,
        SUM(filtered) AS filtered, SUM(duplicate_in_source) AS duplicates, SUM(failed) AS failed, SUM(targets) AS slugs
    FROM crossdock.chunks WHERE job_id = p.job_id) c ON TRUE;
