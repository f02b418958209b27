-- One row a job. The lane makes jobs queue behind each other: an import's lane is its target domain.
CREATE TABLE crossdock.jobs (
    id BIGINT PRIMARY KEY,
    kind TEXT NOT NULL,
    lane TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('stream', 'check_first', 'dry_run')),
    params TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'queued' CHECK (status IN
        ('queued', 'running', 'waiting', 'paused', 'awaiting_token', 'completed', 'failed', 'cancelled')),
    reason TEXT,
    waiting_until TIMESTAMPTZ,
    request_id TEXT,
    run INTEGER NOT NULL DEFAULT 0,
    -- The partitions are known: they are asked for once.
    partitioned BOOLEAN NOT NULL DEFAULT FALSE,
    -- For check_first and dry_run: every chunk was checked.
    checked BOOLEAN NOT NULL DEFAULT FALSE,
    -- The job's rule forbade to go on; what it wrote is being undone.
    undoing BOOLEAN NOT NULL DEFAULT FALSE,
    created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    started_at TIMESTAMPTZ,
    last_progress_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX jobs_one_running_in_a_lane ON crossdock.jobs (lane) WHERE status = 'running';
-- The scheduler's look at what is not over; most jobs are.
CREATE INDEX jobs_unfinished ON crossdock.jobs (status, id) WHERE status NOT IN ('completed', 'cancelled');

-- Held (row lock) by whoever processes the chunks of a job whose sink is serial.
CREATE TABLE crossdock.turns (
    job_id BIGINT PRIMARY KEY REFERENCES crossdock.jobs ON DELETE CASCADE
);

-- A partition's checkpoint and its lease, in one row, so that a page commit can check the one while moving the other.
CREATE TABLE crossdock.partitions (
    job_id BIGINT NOT NULL REFERENCES crossdock.jobs ON DELETE CASCADE,
    part INTEGER NOT NULL,
    key TEXT NOT NULL,
    expected BIGINT,
    status TEXT NOT NULL DEFAULT 'fetching' CHECK (status IN ('fetching', 'ended', 'broken', 'left_out')),
    -- Why it is broken or left out.
    reason TEXT,
    epoch BIGINT NOT NULL DEFAULT 0,
    holder TEXT,
    lease_until TIMESTAMPTZ,
    -- The number of the open segment, where it began, and where the next page begins.
    segment INTEGER NOT NULL DEFAULT 0,
    anchor TEXT NOT NULL DEFAULT '1:beginning',
    position TEXT NOT NULL DEFAULT '1:beginning',
    -- Within the open segment: records staged, and how many of them are in chunks.
    staged INTEGER NOT NULL DEFAULT 0,
    chunked INTEGER NOT NULL DEFAULT 0,
    pages BIGINT NOT NULL DEFAULT 0,
    records BIGINT NOT NULL DEFAULT 0,
    retries BIGINT NOT NULL DEFAULT 0,
    -- The current run: its number, its records, when it began.
    run INTEGER NOT NULL DEFAULT 1,
    run_records BIGINT NOT NULL DEFAULT 0,
    run_started_at TIMESTAMPTZ,
    PRIMARY KEY (job_id, part),
    UNIQUE (job_id, key)
);

-- The history: a line for each segment, which outlives what was staged.
CREATE TABLE crossdock.segments (
    job_id BIGINT NOT NULL,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    run INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'closed', 'cleaned')),
    anchor TEXT NOT NULL,
    pages INTEGER NOT NULL DEFAULT 0,
    records INTEGER NOT NULL DEFAULT 0,
    bytes BIGINT NOT NULL DEFAULT 0,
    retries BIGINT NOT NULL DEFAULT 0,
    fetch_micros BIGINT NOT NULL DEFAULT 0,
    cleaned INTEGER NOT NULL DEFAULT 0,
    started_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    closed_at TIMESTAMPTZ,
    cleaned_at TIMESTAMPTZ,
    PRIMARY KEY (job_id, part, segment),
    FOREIGN KEY (job_id, part) REFERENCES crossdock.partitions ON DELETE CASCADE
);
-- Back-pressure and cleaning look at the few segments that are not cleaned.
CREATE INDEX segments_uncleaned ON crossdock.segments (job_id, part, segment) WHERE status <> 'cleaned';

-- The pages of segments that are not cleaned yet: their cursors are the visited set, so a ring is seen after a resume too.
CREATE TABLE crossdock.pages (
    job_id BIGINT NOT NULL,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    page INTEGER NOT NULL,
    position TEXT NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY (job_id, part, segment, page),
    FOREIGN KEY (job_id, part, segment) REFERENCES crossdock.segments ON DELETE CASCADE
);

-- Raw records as received, the records of a commit packed in a block. No foreign key to segments: the page transaction
-- writes both, and the check would cost as much as the row.
CREATE TABLE crossdock.staged_pages (
    job_id BIGINT NOT NULL,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    first_ordinal INTEGER NOT NULL,
    records INTEGER NOT NULL,
    block BYTEA NOT NULL,
    PRIMARY KEY (job_id, part, segment, first_ordinal)
);
-- The server need not try to compress what is compressed.
ALTER TABLE crossdock.staged_pages ALTER COLUMN block SET STORAGE EXTERNAL;

-- One row a chunk, named by its first record so that a split keeps the order, with what became of its records. They are the job's counters: nothing else is counted.
CREATE TABLE crossdock.chunks (
    job_id BIGINT NOT NULL,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    first_ordinal INTEGER NOT NULL,
    records INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'ready' CHECK (status IN ('ready', 'settled')),
    attempts INTEGER NOT NULL DEFAULT 0,
    retries INTEGER NOT NULL DEFAULT 0,
    imported INTEGER NOT NULL DEFAULT 0,
    updated INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    filtered INTEGER NOT NULL DEFAULT 0,
    duplicate_in_source INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    targets BIGINT NOT NULL DEFAULT 0,
    process_micros BIGINT NOT NULL DEFAULT 0,
    settled_at TIMESTAMPTZ,
    PRIMARY KEY (job_id, part, segment, first_ordinal),
    FOREIGN KEY (job_id, part, segment) REFERENCES crossdock.segments ON DELETE CASCADE,
    CHECK (status = 'ready' OR records =
        imported + updated + unchanged + skipped + filtered + duplicate_in_source + failed)
);
-- The claim reads the lowest ready chunk; settled ones leave the index.
CREATE INDEX chunks_ready ON crossdock.chunks (job_id, part, segment, first_ordinal) WHERE status = 'ready';

-- Per chunk one compact block: what became of each record.
CREATE TABLE crossdock.manifest_blocks (
    job_id BIGINT NOT NULL,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    first_ordinal INTEGER NOT NULL,
    block BYTEA NOT NULL,
    PRIMARY KEY (job_id, part, segment, first_ordinal),
    FOREIGN KEY (job_id, part, segment, first_ordinal) REFERENCES crossdock.chunks ON DELETE CASCADE
);
ALTER TABLE crossdock.manifest_blocks ALTER COLUMN block SET STORAGE EXTERNAL;

-- Failed records, whole.
CREATE TABLE crossdock.quarantine (
    job_id BIGINT NOT NULL REFERENCES crossdock.jobs ON DELETE CASCADE,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    source_id TEXT,
    label TEXT,
    code TEXT NOT NULL,
    detail TEXT NOT NULL,
    raw BYTEA NOT NULL,
    quarantined_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, part, segment, ordinal)
);

-- The error log: the first so many records that did not simply arrive, for people to read.
CREATE TABLE crossdock.notes (
    job_id BIGINT NOT NULL REFERENCES crossdock.jobs ON DELETE CASCADE,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    source_id TEXT,
    label TEXT,
    outcome TEXT NOT NULL,
    code TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (job_id, part, segment, ordinal)
);
