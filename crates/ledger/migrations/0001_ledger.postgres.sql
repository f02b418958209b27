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
    certificate JSONB,
    -- When its manifest, kept bytes and proofs were dropped.
    forgotten_at TIMESTAMPTZ
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

-- Each retry of quarantined records: its segment of the partition of retries is its line of the history.
CREATE TABLE crossdock.ledger_retries (
    job_id BIGINT NOT NULL REFERENCES crossdock.ledger_jobs ON DELETE CASCADE,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    -- Only records with this reason were tried; all, if it is NULL.
    code TEXT,
    -- The hash of the folder that was tried, and of the one that the job had until then.
    folder_hash TEXT NOT NULL,
    folder_hash_before TEXT NOT NULL,
    taken BIGINT NOT NULL DEFAULT 0,
    moved BIGINT NOT NULL DEFAULT 0,
    began_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- NULL: it was broken off; what it moved until then has moved.
    finished_at TIMESTAMPTZ,
    PRIMARY KEY (job_id, part, segment)
);

-- Quarantined records that somebody decided not to bring over. They stay failed and stay in quarantine, and are open no more.
CREATE TABLE crossdock.ledger_discarded (
    job_id BIGINT NOT NULL REFERENCES crossdock.ledger_jobs ON DELETE CASCADE,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    discarded_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    discarded_by TEXT NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (job_id, part, segment, ordinal)
);

-- How far a rollback is. It goes through the manifest backwards, and each of its transactions moves the position.
CREATE TABLE crossdock.ledger_rollbacks (
    job_id BIGINT PRIMARY KEY REFERENCES crossdock.ledger_jobs ON DELETE CASCADE,
    began_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    finished_at TIMESTAMPTZ,
    -- The manifest block that was last dealt with.
    part INTEGER NOT NULL DEFAULT 2147483647,
    segment INTEGER NOT NULL DEFAULT 2147483647,
    first_ordinal INTEGER NOT NULL DEFAULT 2147483647,
    removed BIGINT NOT NULL DEFAULT 0,
    rows BIGINT NOT NULL DEFAULT 0,
    unchanged BIGINT NOT NULL DEFAULT 0
);

-- What a rollback left, by name. No key: a reference may stand in several blocks.
CREATE TABLE crossdock.ledger_rollback_left (
    job_id BIGINT NOT NULL REFERENCES crossdock.ledger_rollbacks ON DELETE CASCADE,
    reference TEXT NOT NULL,
    why TEXT NOT NULL
);
CREATE INDEX ledger_rollback_left_of ON crossdock.ledger_rollback_left (job_id, why, reference);

-- What a second look at the source gave, while it is compared with the manifest. No key: ids may come twice.
CREATE TABLE crossdock.ledger_looks (
    look BIGINT NOT NULL,
    job_id BIGINT NOT NULL REFERENCES crossdock.ledger_jobs ON DELETE CASCADE,
    source_id TEXT,
    came BYTEA NOT NULL
);
CREATE INDEX ledger_looks_of ON crossdock.ledger_looks (look);
