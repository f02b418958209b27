"""Writes the rows of one database into an empty one of the same schema, by the shortest loop there is.

    write_sqlite.py IMPORTED EMPTY

It is the limit of writing: the links, slugs, tags of links and origins that an import left behind, read beforehand,
then inserted in transactions of 10,000 links with the settings the product opens SQLite with (WAL, synchronous FULL).
No page is fetched, staged, checked or logged. Prints one JSON object.
"""

import json
import sqlite3
import sys
import time
from itertools import groupby

LINKS_PER_TRANSACTION = 10_000
# Each table, and the column that says which link a row belongs to.
TABLES = {"links": "id", "slugs": "link_id", "link_tags": "link_id", "link_origins": "link_id"}


def read_rows(path):
    """Per table: its insert, and its rows by link."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    tables = []
    for table, link in TABLES.items():
        cursor = database.execute(f"SELECT * FROM {table} ORDER BY {link}")
        columns = [column[0] for column in cursor.description]
        insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        place = columns.index(link)
        rows = {key: list(group) for key, group in groupby(cursor, lambda row: row[place])}
        tables.append((insert, rows))
    return tables


def batches(tables):
    """What each transaction inserts: pairs of statement and rows."""
    links = list(tables[0][1])
    for start in range(0, len(links), LINKS_PER_TRANSACTION):
        chosen = links[start:start + LINKS_PER_TRANSACTION]
        yield [(insert, [row for link in chosen for row in rows.get(link, ())]) for insert, rows in tables]


def main():
    source, target = sys.argv[1:]
    tables = read_rows(source)
    work = list(batches(tables))
    database = sqlite3.connect(target, isolation_level=None)
    database.execute("PRAGMA journal_mode = wal")
    database.execute("PRAGMA synchronous = full")
    database.execute("PRAGMA foreign_keys = on")
    database.execute("PRAGMA cache_size = -16384")
    database.execute("PRAGMA wal_autocheckpoint = 4000")
    begin = time.perf_counter()
    for batch in work:
        database.execute("BEGIN IMMEDIATE")
        for insert, rows in batch:
            database.executemany(insert, rows)
        database.execute("COMMIT")
    seconds = time.perf_counter() - begin
    links = len(tables[0][1])
    rows = sum(len(rows) for batch in work for _, rows in batch)
    if database.execute("SELECT count(*) FROM links").fetchone()[0] != links:
        raise SystemExit("the loop wrote other rows")
    print(json.dumps({"links": links, "rows": rows, "transactions": len(work), "seconds": round(seconds, 4),
                      "links_per_second": round(links / seconds, 1)}))


if __name__ == "__main__":
    main()
