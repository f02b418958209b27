"""Fills a SQLite database with links that redirects can be asked for.

    seed_links.py DATABASE HOST COUNT

Slugs are s000000 and on, each to https://example.com/landing/N?utm=x. The domain must be there (`crossdock domain
add`), and no process may have the database open: for the filling alone, nothing is synced before the end.
"""

import sqlite3
import sys

NUMBERS = "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :count) "
# A moment that is over, in Unix microseconds.
MADE = 1_760_000_000_000_000
LINKS = NUMBERS + """
INSERT INTO links (id, workspace_id, destination, query_passthrough, enabled, archived, password_protected,
    created_at, updated_at, version)
SELECT :first + n, :workspace, 'https://example.com/landing/' || n || '?utm=x', 1, 1, 0, 0, :made, :made, 1
FROM numbers"""
SLUGS = NUMBERS + """
INSERT INTO slugs (link_id, domain_id, slug, folded)
SELECT :first + n, :domain, printf('s%06d', n), printf('s%06d', n) FROM numbers"""
FIRST_ID = 1_000_000_000_000


def main():
    path, host, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous = off")
    database.execute("PRAGMA cache_size = -1048576")
    found = database.execute("SELECT id, workspace_id FROM domains WHERE host = ?", (host,)).fetchone()
    if found is None:
        raise SystemExit(f"{path} has no domain {host}")
    values = {"count": count, "first": FIRST_ID, "domain": found[0], "workspace": found[1], "made": MADE}
    database.execute("BEGIN IMMEDIATE")
    database.execute(LINKS, values)
    database.execute(SLUGS, values)
    database.execute("COMMIT")
    database.execute("PRAGMA synchronous = full")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if database.execute("SELECT count(*) FROM slugs").fetchone()[0] != count:
        raise SystemExit("the database was not empty")


if __name__ == "__main__":
    main()
