-- The short-link domain. Times are integers of Unix microseconds; ids are made by the program (see db::Id), rising
-- with time, so that tables and their indexes on ids grow at the end.
--
-- The tables that imports fill by the thousand (links, slugs, link_tags, link_origins) have no foreign keys to what
-- exists before them: each would be checked for every row, which was half the time of an import. Rows are inserted
-- under a lock on their domain instead, and the triggers at the end take them away with what they belong to.

CREATE TABLE workspaces (
    id                INTEGER PRIMARY KEY,
    name              TEXT NOT NULL UNIQUE CHECK (name <> ''),
    plan              TEXT NOT NULL DEFAULT 'free' CHECK (plan IN ('free', 'pro', 'business', 'enterprise')),
    -- A domain that goes leaves its workspace without a default, never with a dangling one.
    default_domain_id INTEGER REFERENCES domains (id) ON DELETE SET NULL,
    created_at        INTEGER NOT NULL
) STRICT;

CREATE TABLE domains (
    id                    INTEGER PRIMARY KEY,
    workspace_id          INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    -- Lower case, punycode, no port: compared byte by byte with the Host header. One host belongs to one workspace.
    host                  TEXT NOT NULL UNIQUE CHECK (host <> ''),
    case_mode             TEXT NOT NULL DEFAULT 'sensitive' CHECK (case_mode IN ('sensitive', 'insensitive')),
    root_redirect         TEXT,
    fallback_url          TEXT,
    expired_url           TEXT,
    default_redirect_code INTEGER NOT NULL DEFAULT 302 CHECK (default_redirect_code IN (301, 302, 307, 308)),
    created_at            INTEGER NOT NULL,
    version               INTEGER NOT NULL DEFAULT 1
) STRICT;

-- For the list of a workspace's domains and for its cascade.
CREATE INDEX domains_workspace ON domains (workspace_id);

CREATE TABLE folders (
    id           INTEGER PRIMARY KEY,
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name         TEXT NOT NULL CHECK (name <> ''),
    -- The import that made it: its undo takes the folder away if nothing lies in it.
    import_job   INTEGER,
    UNIQUE (workspace_id, name)
) STRICT;

CREATE TABLE tags (
    id           INTEGER PRIMARY KEY,
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name         TEXT NOT NULL CHECK (name <> ''),
    -- As for folders.
    import_job   INTEGER,
    UNIQUE (workspace_id, name)
) STRICT;

CREATE TABLE links (
    id                 INTEGER PRIMARY KEY,
    workspace_id       INTEGER NOT NULL,
    -- The bytes as given; never the form of a URL parser.
    destination        TEXT NOT NULL CHECK (destination <> ''),
    title              TEXT,
    notes              TEXT,
    folder_id          INTEGER REFERENCES folders (id) ON DELETE SET NULL,
    -- NULL: the domain's.
    redirect_code      INTEGER CHECK (redirect_code IN (301, 302, 307, 308)),
    query_passthrough  INTEGER NOT NULL CHECK (query_passthrough IN (0, 1)),
    enabled            INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    archived           INTEGER NOT NULL CHECK (archived IN (0, 1)),
    expires_at         INTEGER,
    expired_url        TEXT,
    password_protected INTEGER NOT NULL CHECK (password_protected IN (0, 1)),
    ios_url            TEXT,
    android_url        TEXT,
    geo                TEXT,
    utm                TEXT,
    -- What another service had counted; kept apart from link_clicks.
    imported_clicks    INTEGER,
    external_id        TEXT,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    -- Set: deleted, may be restored; its slugs are free.
    deleted_at         INTEGER,
    version            INTEGER NOT NULL DEFAULT 1,
    -- Where it came from. Vendor and source_id lead to link_origins, which keeps the large part.
    vendor             TEXT,
    source_id          TEXT,
    import_job         INTEGER
) STRICT;

-- Lists page backwards by id; each filter that selects few links has an index in that order.
CREATE INDEX links_workspace ON links (workspace_id, id) WHERE deleted_at IS NULL;
CREATE INDEX links_deleted   ON links (workspace_id, id) WHERE deleted_at IS NOT NULL;
CREATE INDEX links_archived  ON links (workspace_id, id) WHERE deleted_at IS NULL AND archived = 1;
CREATE INDEX links_disabled  ON links (workspace_id, id) WHERE deleted_at IS NULL AND enabled = 0;
CREATE INDEX links_expiring  ON links (workspace_id, id) WHERE deleted_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX links_folder    ON links (folder_id, id) WHERE folder_id IS NOT NULL;
-- Also the walk of an undo.
CREATE INDEX links_import    ON links (import_job, id) WHERE import_job IS NOT NULL;
-- A deleted link keeps its external id: creating it "again" must not make a second one.
CREATE UNIQUE INDEX links_external_id ON links (workspace_id, external_id) WHERE external_id IS NOT NULL;

-- Clustered by link: inserts append, and a link's slugs are read in one place.
CREATE TABLE slugs (
    link_id    INTEGER NOT NULL,
    domain_id  INTEGER NOT NULL,
    slug       TEXT NOT NULL CHECK (slug <> ''),
    -- What the domain compares: the slug itself on a case-sensitive domain, its folded form on an insensitive one.
    folded     TEXT NOT NULL,
    -- Set together with the link's.
    deleted_at INTEGER,
    PRIMARY KEY (link_id, domain_id, slug)
) STRICT, WITHOUT ROWID;

-- The index of every redirect. Because folded follows from slug, it also makes (domain_id, slug) unique: one index
-- serves both case modes.
CREATE UNIQUE INDEX slugs_folded ON slugs (domain_id, folded) WHERE deleted_at IS NULL;
-- Lists of one domain's links.
CREATE INDEX slugs_domain ON slugs (domain_id, link_id);

CREATE TABLE link_tags (
    link_id INTEGER NOT NULL,
    tag_id  INTEGER NOT NULL,
    PRIMARY KEY (link_id, tag_id)
) STRICT, WITHOUT ROWID;

-- Lists of one tag's links.
CREATE INDEX link_tags_tag ON link_tags (tag_id, link_id);

-- What an import has brought, and in which state it wrote it. Rows outlive their link, so
-- that a link a user has deleted is recognised; the undo of the import removes them.
CREATE TABLE link_origins (
    workspace_id     INTEGER NOT NULL,
    vendor           TEXT NOT NULL,
    source_id        TEXT NOT NULL,
    domain_id        INTEGER NOT NULL,
    link_id          INTEGER NOT NULL,
    -- links::digest of what was written, and the link's version then: an edit made here changes the version, damage
    -- changes the digest alone.
    imported_digest  BLOB NOT NULL CHECK (length(imported_digest) = 16),
    imported_version INTEGER NOT NULL,
    -- Digest of what the source had sent.
    source_digest    BLOB NOT NULL,
    -- The vendor's own record, without secrets; text and not JSON, so that its bytes stay.
    source_json      TEXT,
    -- The job that wrote last.
    job_id           INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX link_origins_identity ON link_origins (workspace_id, vendor, source_id, domain_id);

CREATE TABLE api_tokens (
    id           INTEGER PRIMARY KEY,
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name         TEXT NOT NULL CHECK (name <> ''),
    -- SHA-256 of the token: 160 random bits need no slow hash. Unique, and the look-up of every request.
    hash         BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    -- The token's first characters, for people.
    prefix       TEXT NOT NULL,
    -- Words separated by blanks.
    scopes       TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER
) STRICT;

CREATE INDEX api_tokens_workspace ON api_tokens (workspace_id);

-- Clicks as they are flushed: one row per flush, so that counting costs one insert whatever was clicked.
CREATE TABLE click_batches (
    id       INTEGER PRIMARY KEY,
    taken_at INTEGER NOT NULL,
    clicks   BLOB NOT NULL
) STRICT;

-- Clicks per link and hour. No foreign key: a click on a link that has gone must not stop the others.
CREATE TABLE link_clicks (
    link_id INTEGER NOT NULL,
    hour    INTEGER NOT NULL,
    humans  INTEGER NOT NULL,
    bots    INTEGER NOT NULL,
    PRIMARY KEY (link_id, hour)
) STRICT, WITHOUT ROWID;

-- What caches must forget. AUTOINCREMENT: a number is never given twice, also after a purge.
CREATE TABLE slug_changes (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    -- NULL: every domain.
    domain_id INTEGER,
    -- NULL: the whole domain.
    folded    TEXT,
    link_id   INTEGER,
    made_at   INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER))
) STRICT;

-- What belongs to rows that go, goes.

CREATE TRIGGER links_gone AFTER DELETE ON links BEGIN
    DELETE FROM slugs WHERE link_id = OLD.id;
    DELETE FROM link_tags WHERE link_id = OLD.id;
    DELETE FROM link_clicks WHERE link_id = OLD.id;
END;

CREATE TRIGGER tags_gone AFTER DELETE ON tags BEGIN
    DELETE FROM link_tags WHERE tag_id = OLD.id;
END;

CREATE TRIGGER domains_gone AFTER DELETE ON domains BEGIN
    DELETE FROM slugs WHERE domain_id = OLD.id;
    -- Without an index of its own: domains go rarely, origins come by the thousand.
    DELETE FROM link_origins WHERE domain_id = OLD.id;
END;

CREATE TRIGGER workspaces_gone AFTER DELETE ON workspaces BEGIN
    DELETE FROM links WHERE workspace_id = OLD.id;
    DELETE FROM link_origins WHERE workspace_id = OLD.id;
END;
