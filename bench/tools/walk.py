"""Walks a simulated source page by page with nothing behind it: the limit of fetching.

One connection, one request after another, as a cursor allows it. Of a body only the next cursor is read, so that this
program costs little beside the server. Prints one JSON object.
"""

import argparse
import http.client
import json
import re
import time
from urllib.parse import quote, urlsplit

# Parameters of the first page and of the following ones, how a body names the next cursor, and its list.
FORMS = {
    "bitly": ("?size=100&archived=both&search_after=", "{}", rb'"search_after":"([^"]*)"', "links"),
    "wallet-logs": ("?limit=1000", "&cursor={}", rb'"next_cursor":"([^"]*)"', "data"),
}


def fetch(connection, path, headers, pattern):
    """One page: its body, and the next cursor, which is empty at the end."""
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"the simulator answered {answer.status}: {body[:200]!r}")
    # It stands at the end of the body, after the records.
    found = pattern.search(body, max(0, len(body) - 1000))
    return body, found.group(1).decode() if found else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("--url", required=True, help="of the list")
    parser.add_argument("--token-file", required=True, help="the line that the simulator printed")
    parser.add_argument("--expect", type=int, required=True)
    options = parser.parse_args()
    first, following, cursor_of, name = FORMS[options.form]
    pattern = re.compile(cursor_of)
    with open(options.token_file) as file:
        token = json.loads(file.readline())["token"]
    url = urlsplit(options.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    headers = {"Authorization": f"Bearer {token}"}
    records = pages = size = seconds = 0
    cursor = ""
    while cursor or not pages:
        more = following.format(quote(cursor)) if cursor else ""
        begin = time.perf_counter()
        body, cursor = fetch(connection, url.path + first + more, headers, pattern)
        seconds += time.perf_counter() - begin
        # Counted outside the time that is measured.
        records += len(json.loads(body)[name])
        pages += 1
        size += len(body)
    if records != options.expect:
        raise SystemExit(f"{records} records were fetched, {options.expect} were expected")
    print(json.dumps({"records": records, "pages": pages, "bytes": size, "seconds": round(seconds, 4),
                      "records_per_second": round(records / seconds, 1)}))


if __name__ == "__main__":
    main()
