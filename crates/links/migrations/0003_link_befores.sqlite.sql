-- What a link was before an import wrote it again, so that the undo of the import can put it back.
CREATE TABLE link_befores (
    job_id             INTEGER NOT NULL,
    link_id            INTEGER NOT NULL REFERENCES links (id) ON DELETE CASCADE,
    destination        TEXT NOT NULL,
    title              TEXT,
    notes              TEXT,
    folder_id          INTEGER,
    redirect_code      INTEGER,
    query_passthrough  INTEGER NOT NULL,
    enabled            INTEGER NOT NULL,
    archived           INTEGER NOT NULL,
    expires_at         INTEGER,
    expired_url        TEXT,
    password_protected INTEGER NOT NULL,
    ios_url            TEXT,
    android_url        TEXT,
    geo                TEXT,
    utm                TEXT,
    imported_clicks    INTEGER,
    external_id        TEXT,
    created_at         INTEGER NOT NULL,
    -- The ids of its tags, and its slugs as [domain, slug].
    tags               TEXT NOT NULL,
    slugs              TEXT NOT NULL,
    -- From link_origins.
    imported_digest    BLOB NOT NULL,
    source_digest      BLOB NOT NULL,
    source_json        TEXT,
    origin_job         INTEGER NOT NULL,
    PRIMARY KEY (job_id, link_id)
) STRICT, WITHOUT ROWID;

-- For links that go.
CREATE INDEX link_befores_link ON link_befores (link_id);
