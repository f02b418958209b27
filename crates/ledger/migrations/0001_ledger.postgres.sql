-- Beside the engine's tables, in the same schema. There is no SQLite twin: a ledger lives on Postgres.

-- What a job migrates, as it was declared when the job was made.
CREATE TABLE crossdock.ledger_jobs (
    job_id BIGINT PRIMARY KEY REFERENCES crossdock.jobs ON DELETE CASCADE,
    name TEXT NOT NULL,
    -- The texts of the folder by name, and their hash.
    folder JSONB NOT NULL,
    folder_hash TEXT NOT NULL,
    variables JSONB NOT NULL DEFAULT '{}',
    -- The transaction id at the start: rows of the target that are older are not the job's.
    begun_xid TEXT NOT NULL,
    -- The closing proof that let the job complete, or kept it from it.
    certificate JSONB
);

-- Per part of a chunk what is proved: how many records stand in the target, the order-free hash of their proved fields,
-- and their sums; computed from the received bytes, and committed with the rows.
CREATE TABLE crossdock.ledger_proofs (
    job_id BIGINT NOT NULL,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    records BIGINT NOT NULL,
    hash BYTEA NOT NULL CHECK (octet_length(hash) = 16),
    sums JSONB NOT NULL,
    PRIMARY KEY (job_id, part, segment, ordinal),
    FOREIGN KEY (job_id) REFERENCES crossdock.ledger_jobs ON DELETE CASCADE
);
