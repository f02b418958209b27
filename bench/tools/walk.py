"""Walks a simulated Bitly account page by page with nothing behind it: the limit of fetching.

One connection, pages of 100, one request after another, as a cursor allows it. Of a body only the next cursor is
read, so that this program costs little beside the server. Prints one JSON object.
"""

import argparse
import http.client
import json
import re
import time
from urllib.parse import quote, urlsplit

PAGE_SIZE = 100
CURSOR = re.compile(rb'"search_after":"([^"]*)"')


def fetch(connection, path, headers, cursor):
    """One page: its body, and the next cursor, which is empty at the end."""
    connection.request("GET", f"{path}?size={PAGE_SIZE}&archived=both&search_after={quote(cursor)}", headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"the simulator answered {answer.status}: {body[:200]!r}")
    # It stands at the end of the body, after the links.
    found = CURSOR.search(body, max(0, len(body) - 1000))
    return body, found.group(1).decode() if found else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--token-file", required=True, help="the line that the simulator printed")
    parser.add_argument("--group", required=True)
    parser.add_argument("--expect", type=int, required=True)
    options = parser.parse_args()
    with open(options.token_file) as file:
        token = json.loads(file.readline())["token"]
    url = urlsplit(options.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    path = f"{url.path}/groups/{options.group}/bitlinks"
    headers = {"Authorization": f"Bearer {token}"}
    links = pages = size = seconds = 0
    cursor = ""
    while cursor or not pages:
        begin = time.perf_counter()
        body, cursor = fetch(connection, path, headers, cursor)
        seconds += time.perf_counter() - begin
        # Whether all links came is checked outside the time that is measured.
        links += len(json.loads(body)["links"])
        pages += 1
        size += len(body)
    if links != options.expect:
        raise SystemExit(f"{links} links were fetched, {options.expect} were expected")
    print(json.dumps({"links": links, "pages": pages, "bytes": size, "seconds": round(seconds, 4),
                      "links_per_second": round(links / seconds, 1)}))


if __name__ == "__main__":
    main()
