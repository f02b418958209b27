-- The hosts of short URLs that a check (a dry run, or the rule `fail`) met at the source, with where they go: one row an
-- import, because it is written and read as a whole.
CREATE TABLE import_hosts (
    job_id INTEGER PRIMARY KEY REFERENCES import_parameters ON DELETE CASCADE,
    -- Records looked at so far; a snapshot over fewer never replaces one over more.
    records INTEGER NOT NULL,
    hosts TEXT NOT NULL
) STRICT;
