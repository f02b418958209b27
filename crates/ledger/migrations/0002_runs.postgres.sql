-- The folders that a job had before a changed one was accepted: which rows an earlier map wrote can be told afterwards.
CREATE TABLE crossdock.ledger_changes (
    job_id BIGINT NOT NULL REFERENCES crossdock.ledger_jobs ON DELETE CASCADE,
    changed_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- What the job had until then, and the hash of what took its place.
    folder JSONB NOT NULL,
    folder_hash TEXT NOT NULL,
    variables JSONB NOT NULL,
    new_folder_hash TEXT NOT NULL,
    -- What changed, as it was told.
    told JSONB NOT NULL,
    -- Records that had an outcome by then, and those of them that had failed.
    settled BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (job_id, changed_at)
);

-- What a dry run would have written so far: its rows are rolled back with each chunk, and a reference that comes again must be
-- foretold all the same. Not logged: after a crash a dry run checks anew.
CREATE UNLOGGED TABLE crossdock.ledger_rehearsed (
    -- One check by one process.
    rehearsal BIGINT NOT NULL,
    reference TEXT NOT NULL,
    job_id BIGINT NOT NULL,
    -- The digest of the proved fields that came.
    came BYTEA NOT NULL,
    PRIMARY KEY (rehearsal, reference)
);
