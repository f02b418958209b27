-- The twin of the Postgres file: times are Unix microseconds, and there is no table of turns because one process
-- holds the runner lock. Most tables are clustered by their key (WITHOUT ROWID): that is how
-- they are read.

-- One row a job. The lane makes jobs queue behind each other: an import's lane is its target domain.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    lane TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('stream', 'check_first', 'dry_run')),
    params TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'queued' CHECK (status IN
        ('queued', 'running', 'waiting', 'paused', 'awaiting_token', 'completed', 'failed', 'cancelled')),
    reason TEXT,
    waiting_until INTEGER,
    request_id TEXT,
    run INTEGER NOT NULL DEFAULT 0,
    -- The partitions are known: they are asked for once.
    partitioned INTEGER NOT NULL DEFAULT 0,
    -- For check_first and dry_run: every chunk was checked.
    checked INTEGER NOT NULL DEFAULT 0,
    -- The job's rule forbade to go on; what it wrote is being undone.
    undoing INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    started_at INTEGER,
    last_progress_at INTEGER,
    finished_at INTEGER
) STRICT;
CREATE UNIQUE INDEX jobs_one_running_in_a_lane ON jobs (lane) WHERE status = 'running';
-- The scheduler's look at what is not over; most jobs are.
CREATE INDEX jobs_unfinished ON jobs (status, id) WHERE status NOT IN ('completed', 'cancelled');

-- A partition's checkpoint and its lease, in one row, so that a page commit can check the one while moving the other.
CREATE TABLE partitions (
    job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    part INTEGER NOT NULL,
    key TEXT NOT NULL,
    expected INTEGER,
    status TEXT NOT NULL DEFAULT 'fetching' CHECK (status IN ('fetching', 'ended', 'broken', 'left_out')),
    -- Why it is broken or left out.
    reason TEXT,
    epoch INTEGER NOT NULL DEFAULT 0,
    holder TEXT,
    lease_until INTEGER,
    -- The number of the open segment, where it began, and where the next page begins.
    segment INTEGER NOT NULL DEFAULT 0,
    anchor TEXT NOT NULL DEFAULT '1:beginning',
    position TEXT NOT NULL DEFAULT '1:beginning',
    -- Within the open segment: records staged, and how many of them are in chunks.
    staged INTEGER NOT NULL DEFAULT 0,
    chunked INTEGER NOT NULL DEFAULT 0,
    pages INTEGER NOT NULL DEFAULT 0,
    records INTEGER NOT NULL DEFAULT 0,
    retries INTEGER NOT NULL DEFAULT 0,
    -- The current run: its number, its records, when it began.
    run INTEGER NOT NULL DEFAULT 1,
    run_records INTEGER NOT NULL DEFAULT 0,
    run_started_at INTEGER,
    PRIMARY KEY (job_id, part),
    UNIQUE (job_id, key)
) STRICT, WITHOUT ROWID;

-- The history: a line for each segment, which outlives what was staged.
CREATE TABLE segments (
    job_id INTEGER NOT NULL,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    -- Where its records stand in staged_pages; never used twice while they are there.
    stage INTEGER NOT NULL UNIQUE,
    run INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'closed', 'cleaned')),
    anchor TEXT NOT NULL,
    pages INTEGER NOT NULL DEFAULT 0,
    records INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    retries INTEGER NOT NULL DEFAULT 0,
    fetch_micros INTEGER NOT NULL DEFAULT 0,
    cleaned INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    closed_at INTEGER,
    cleaned_at INTEGER,
    PRIMARY KEY (job_id, part, segment),
    FOREIGN KEY (job_id, part) REFERENCES partitions ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
-- Back-pressure and cleaning look at the few segments that are not cleaned.
CREATE INDEX segments_uncleaned ON segments (job_id, part, segment) WHERE status <> 'cleaned';

-- The pages of segments that are not cleaned yet: their cursors are the visited set, so a ring is seen after a resume too.
CREATE TABLE pages (
    job_id INTEGER NOT NULL,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    page INTEGER NOT NULL,
    position TEXT NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY (job_id, part, segment, page),
    FOREIGN KEY (job_id, part, segment) REFERENCES segments ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Raw records as received, the records of a commit packed in a block. The place is the segment's stage times 2^24 plus the
-- ordinal of the first record: rows of one segment lie side by side, new ones come at the table's end. SQLite appends to a
-- table of row ids without moving what is there, which takes half the time that the Postgres twin's key takes here, and
-- leaves the pages of the cache where they are at COMMIT.
CREATE TABLE staged_pages (
    place INTEGER PRIMARY KEY,
    records INTEGER NOT NULL,
    block BLOB NOT NULL
) STRICT;

-- One row a chunk, named by its first record so that a split keeps the order, with what became of its records. They are the job's counters: nothing else is counted.
CREATE TABLE chunks (
    job_id INTEGER NOT NULL,
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
    targets INTEGER NOT NULL DEFAULT 0,
    process_micros INTEGER NOT NULL DEFAULT 0,
    settled_at INTEGER,
    PRIMARY KEY (job_id, part, segment, first_ordinal),
    FOREIGN KEY (job_id, part, segment) REFERENCES segments ON DELETE CASCADE,
    CHECK (status = 'ready' OR records =
        imported + updated + unchanged + skipped + filtered + duplicate_in_source + failed)
) STRICT, WITHOUT ROWID;
-- The claim reads the lowest ready chunk; settled ones leave the index.
CREATE INDEX chunks_ready ON chunks (job_id, part, segment, first_ordinal) WHERE status = 'ready';

-- Per chunk one compact block: what became of each record.
CREATE TABLE manifest_blocks (
    job_id INTEGER NOT NULL,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    first_ordinal INTEGER NOT NULL,
    block BLOB NOT NULL,
    PRIMARY KEY (job_id, part, segment, first_ordinal),
    FOREIGN KEY (job_id, part, segment, first_ordinal) REFERENCES chunks ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Failed records, whole.
CREATE TABLE quarantine (
    job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    source_id TEXT,
    label TEXT,
    code TEXT NOT NULL,
    detail TEXT NOT NULL,
    raw BLOB NOT NULL,
    quarantined_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    PRIMARY KEY (job_id, part, segment, ordinal)
) STRICT, WITHOUT ROWID;

-- The error log: the first so many records that did not simply arrive, for people to read.
CREATE TABLE notes (
    job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    part INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    source_id TEXT,
    label TEXT,
    outcome TEXT NOT NULL,
    code TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (job_id, part, segment, ordinal)
) STRICT, WITHOUT ROWID;
