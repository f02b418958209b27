-- The short-link domain. Ids are made by the program (see db::Id), rising with time, so that tables and their
-- indexes on ids grow at the end. Text that is compared byte by byte has the collation "C", which compares so.
--
-- The tables that imports fill by the thousand (links, slugs, link_tags, link_origins) have no foreign keys to what
-- exists before them: each would be checked for every row, which was half the time of an import. Rows are inserted
-- under a lock on their domain instead, and the triggers at the end take them away with what they belong to.

CREATE TABLE workspaces (
    id                BIGINT PRIMARY KEY,
    name              TEXT NOT NULL UNIQUE CHECK (name <> ''),
    plan              TEXT NOT NULL DEFAULT 'free' CHECK (plan IN ('free', 'pro', 'business', 'enterprise')),
    -- A domain that goes leaves its workspace without a default, never with a dangling one.
    default_domain_id BIGINT,
    created_at        TIMESTAMPTZ NOT NULL
);

CREATE TABLE domains (
    id                    BIGINT PRIMARY KEY,
    workspace_id          BIGINT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    -- Lower case, punycode, no port: compared byte by byte with the Host header. One host belongs to one workspace.
    host                  TEXT COLLATE "C" NOT NULL UNIQUE CHECK (host <> ''),
    case_mode             TEXT NOT NULL DEFAULT 'sensitive' CHECK (case_mode IN ('sensitive', 'insensitive')),
    root_redirect         TEXT,
    fallback_url          TEXT,
    expired_url           TEXT,
    default_redirect_code SMALLINT NOT NULL DEFAULT 302 CHECK (default_redirect_code IN (301, 302, 307, 308)),
    created_at            TIMESTAMPTZ NOT NULL,
    version               BIGINT NOT NULL DEFAULT 1
);

ALTER TABLE workspaces
    ADD CONSTRAINT workspaces_default_domain FOREIGN KEY (default_domain_id) REFERENCES domains (id) ON DELETE SET NULL;

-- For the list of a workspace's domains and for its cascade.
CREATE INDEX domains_workspace ON domains (workspace_id);

CREATE TABLE folders (
    id           BIGINT PRIMARY KEY,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name         TEXT NOT NULL CHECK (name <> ''),
    -- The import that made it: its undo takes the folder away if nothing lies in it.
    import_job   BIGINT,
    UNIQUE (workspace_id, name)
);

CREATE TABLE tags (
    id           BIGINT PRIMARY KEY,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name         TEXT NOT NULL CHECK (name <> ''),
    -- As for folders.
    import_job   BIGINT,
    UNIQUE (workspace_id, name)
);

CREATE TABLE links (
    id                 BIGINT PRIMARY KEY,
    workspace_id       BIGINT NOT NULL,
    -- The bytes as given; never the form of a URL parser.
    destination        TEXT NOT NULL CHECK (destination <> ''),
    title              TEXT,
    notes              TEXT,
    folder_id          BIGINT REFERENCES folders (id) ON DELETE SET NULL,
    -- NULL: the domain's.
    redirect_code      SMALLINT CHECK (redirect_code IN (301, 302, 307, 308)),
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
    -- What another service had counted; kept apart from link_clicks.
    imported_clicks    BIGINT,
    external_id        TEXT,
    created_at         TIMESTAMPTZ NOT NULL,
    updated_at         TIMESTAMPTZ NOT NULL,
    -- Set: deleted, may be restored; its slugs are free.
    deleted_at         TIMESTAMPTZ,
    version            BIGINT NOT NULL DEFAULT 1,
    -- Where it came from. Vendor and source_id lead to link_origins, which keeps the large part.
    vendor             TEXT COLLATE "C",
    source_id          TEXT COLLATE "C",
    import_job         BIGINT
);

-- Lists page backwards by id; each filter that selects few links has an index in that order.
CREATE INDEX links_workspace ON links (workspace_id, id) WHERE deleted_at IS NULL;
CREATE INDEX links_deleted   ON links (workspace_id, id) WHERE deleted_at IS NOT NULL;
CREATE INDEX links_archived  ON links (workspace_id, id) WHERE deleted_at IS NULL AND archived;
CREATE INDEX links_disabled  ON links (workspace_id, id) WHERE deleted_at IS NULL AND NOT enabled;
CREATE INDEX links_expiring  ON links (workspace_id, id) WHERE deleted_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX links_folder    ON links (folder_id, id) WHERE folder_id IS NOT NULL;
-- Also the walk of an undo.
CREATE INDEX links_import    ON links (import_job, id) WHERE import_job IS NOT NULL;
-- A deleted link keeps its external id: creating it "again" must not make a second one.
CREATE UNIQUE INDEX links_external_id ON links (workspace_id, external_id) WHERE external_id IS NOT NULL;

-- Clustered by link: inserts append, and a link's slugs are read in one place.
CREATE TABLE slugs (
    link_id    BIGINT NOT NULL,
    domain_id  BIGINT NOT NULL,
    slug       TEXT COLLATE "C" NOT NULL CHECK (slug <> ''),
    -- What the domain compares: the slug itself on a case-sensitive domain, its folded form on an insensitive one.
    folded     TEXT COLLATE "C" NOT NULL,
    -- Set together with the link's.
    deleted_at TIMESTAMPTZ,
    PRIMARY KEY (link_id, domain_id, slug)
);

-- The index of every redirect. Because folded follows from slug, it also makes (domain_id, slug) unique: one index
-- serves both case modes.
CREATE UNIQUE INDEX slugs_folded ON slugs (domain_id, folded) WHERE deleted_at IS NULL;
-- Lists of one domain's links.
CREATE INDEX slugs_domain ON slugs (domain_id, link_id);

CREATE TABLE link_tags (
    link_id BIGINT NOT NULL,
    tag_id  BIGINT NOT NULL,
    PRIMARY KEY (link_id, tag_id)
);

-- Lists of one tag's links.
CREATE INDEX link_tags_tag ON link_tags (tag_id, link_id);

-- What an import has brought, and in which state it wrote it. Rows outlive their link, so
-- that a link a user has deleted is recognised; the undo of the import removes them.
CREATE TABLE link_origins (
    workspace_id     BIGINT NOT NULL,
    vendor           TEXT COLLATE "C" NOT NULL,
    source_id        TEXT COLLATE "C" NOT NULL,
    domain_id        BIGINT NOT NULL,
    link_id          BIGINT NOT NULL,
    -- links::digest of what was written, and the link's version then: an edit made here changes the version, damage
    -- changes the digest alone.
    imported_digest  BYTEA NOT NULL CHECK (octet_length(imported_digest) = 16),
    imported_version BIGINT NOT NULL,
    -- Digest of what the source had sent.
    source_digest    BYTEA NOT NULL,
    -- The vendor's own record, without secrets; text and not JSON, so that its bytes stay.
    source_json      TEXT,
    -- The job that wrote last.
    job_id           BIGINT NOT NULL
);

CREATE UNIQUE INDEX link_origins_identity ON link_origins (workspace_id, vendor, source_id, domain_id);

CREATE TABLE api_tokens (
    id           BIGINT PRIMARY KEY,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name         TEXT NOT NULL CHECK (name <> ''),
    -- SHA-256 of the token: 160 random bits need no slow hash. Unique, and the look-up of every request.
    hash         BYTEA NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    -- The token's first characters, for people.
    prefix       TEXT NOT NULL,
    -- Words separated by blanks.
    scopes       TEXT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    expires_at   TIMESTAMPTZ,
    revoked_at   TIMESTAMPTZ,
    last_used_at TIMESTAMPTZ
);

CREATE INDEX api_tokens_workspace ON api_tokens (workspace_id);

-- Clicks as they are flushed: one row per flush, so that counting costs one insert whatever was clicked.
CREATE TABLE click_batches (
    id       BIGINT PRIMARY KEY,
    taken_at TIMESTAMPTZ NOT NULL,
    clicks   BYTEA NOT NULL
);

-- Clicks per link and hour. No foreign key: a click on a link that has gone must not stop the others.
CREATE TABLE link_clicks (
    link_id BIGINT NOT NULL,
    hour    TIMESTAMPTZ NOT NULL,
    humans  BIGINT NOT NULL,
    bots    BIGINT NOT NULL,
    PRIMARY KEY (link_id, hour)
);

-- What caches must forget. Transactions commit in another order than they number their rows, so readers go by the
-- transaction: everything from the oldest one that was still under way is read again.
CREATE TABLE slug_changes (
    id        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- NULL: every domain.
    domain_id BIGINT,
    -- NULL: the whole domain.
    folded    TEXT COLLATE "C",
    link_id   BIGINT,
    made_at   TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    xact      XID8 NOT NULL DEFAULT pg_current_xact_id()
);

CREATE INDEX slug_changes_xact ON slug_changes (xact);

-- What belongs to rows that go, goes; by the statement, not by the row.

CREATE FUNCTION links_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM slugs USING gone WHERE slugs.link_id = gone.id;
    DELETE FROM link_tags USING gone WHERE link_tags.link_id = gone.id;
    DELETE FROM link_clicks USING gone WHERE link_clicks.link_id = gone.id;
    RETURN NULL;
END $$;

CREATE TRIGGER links_gone AFTER DELETE ON links REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION links_gone();

CREATE FUNCTION tags_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM link_tags USING gone WHERE link_tags.tag_id = gone.id;
    RETURN NULL;
END $$;

CREATE TRIGGER tags_gone AFTER DELETE ON tags REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION tags_gone();

CREATE FUNCTION domains_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM slugs USING gone WHERE slugs.domain_id = gone.id;
    -- Without an index of its own: domains go rarely, origins come by the thousand.
    DELETE FROM link_origins USING gone WHERE link_origins.domain_id = gone.id;
    RETURN NULL;
END $$;

CREATE TRIGGER domains_gone AFTER DELETE ON domains REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION domains_gone();

CREATE FUNCTION workspaces_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM links USING gone WHERE links.workspace_id = gone.id;
    DELETE FROM link_origins USING gone WHERE link_origins.workspace_id = gone.id;
    RETURN NULL;
END $$;

CREATE TRIGGER workspaces_gone AFTER DELETE ON workspaces REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION workspaces_gone();
