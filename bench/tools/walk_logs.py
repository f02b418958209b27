"""Walks an export of wallet logs page by page with nothing behind it: the limit of fetching.

One connection, pages of 1,000, one request after another, as a cursor allows it. Of a body only the next cursor is
read, so that this program costs little beside the server. Prints one JSON object.
"""

import argparse
import http.client
import json
import re
import time
from urllib.parse import quote, urlsplit

PAGE_SIZE = 1000
CURSOR = re.compile(rb'"next_cursor":"([^"]*)"')
RECORD = b'"wallet_id":'


def fetch(connection, path, headers, cursor):
    """One page: its body, and the next cursor, which is empty at the end."""
    more = f"&cursor={quote(cursor)}" if cursor else ""
    connection.request("GET", f"{path}?limit={PAGE_SIZE}{more}", headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"the simulator answered {answer.status}: {body[:200]!r}")
    # It stands at the end of the body, after the records.
    found = CURSOR.search(body, max(0, len(body) - 1000))
    return body, found.group(1).decode() if found else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--token-file", required=True, help="the line that the simulator printed")
    parser.add_argument("--expect", type=int, required=True)
    options = parser.parse_args()
    with open(options.token_file) as file:
        token = json.loads(file.readline())["token"]
    url = urlsplit(options.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    headers = {"Authorization": f"Bearer {token}"}
    records = pages = size = seconds = 0
    cursor = ""
    while cursor or not pages:
        begin = time.perf_counter()
        body, cursor = fetch(connection, f"{url.path.rstrip('/')}/wallet-logs", headers, cursor)
        seconds += time.perf_counter() - begin
        # Counted outside the time that is measured.
        records += body.count(RECORD)
        pages += 1
        size += len(body)
    if records != options.expect:
        raise SystemExit(f"{records} records were fetched, {options.expect} were expected")
    print(json.dumps({"records": records, "pages": pages, "bytes": size, "seconds": round(seconds, 4),
                      "records_per_second": round(records / seconds, 1)}))


if __name__ == "__main__":
    main()
