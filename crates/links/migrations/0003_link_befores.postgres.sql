-- What a link was before an import wrote it again, so that the undo of the import can put it back.
CREATE TABLE link_befores (
    job_id             BIGINT NOT NULL,
    link_id            BIGINT NOT NULL REFERENCES links (id) ON DELETE CASCADE,
    destination        TEXT NOT NULL,
    title              TEXT,
    notes              TEXT,
    folder_id          BIGINT,
    redirect_code      SMALLINT,
    query_passthrough  BOOLEAN NOT NULL,
    enabled            BOOLEAN NOT NULL,
    archived           BOOLEAN NOT NULL,
    expires_at         TIMESTAMPTZ,
    expired_url        TEXT,
    password_protected BOOLEAN NOT NULL,
    ios_url            TEXT,
    android_url        TEXT,
    geo                TEXT,
    utm                TEXT,
    imported_clicks    BIGINT,
    external_id        TEXT,
    created_at         TIMESTAMPTZ NOT NULL,
    -- The ids of its tags, and its slugs as [domain, slug].
    tags               JSONB NOT NULL,
    slugs              JSONB NOT NULL,
    -- From link_origins.
    imported_digest    BYTEA NOT NULL,
    source_digest      BYTEA NOT NULL,
    source_json        TEXT,
    origin_job         BIGINT NOT NULL,
    PRIMARY KEY (job_id, link_id)
);

-- For links that go.
CREATE INDEX link_befores_link ON link_befores (link_id);
