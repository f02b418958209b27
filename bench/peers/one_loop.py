"""The migration as it is first written: one loop, page by page, record by record, a commit for each page.

    one_loop.py RECORDS PAGE-SIZE

For each record the account is looked up and the row is upserted into bank.transactions. The environment gives LOGS_URL,
LOGS_TOKEN and PEER_DATABASE (a URL). Stops at the first page that reaches RECORDS; prints records and seconds.
"""

import json
import os
import sys
import time

import psycopg
import requests

ACCOUNT = "SELECT id, customer_id FROM bank.accounts WHERE wallet_id = %s"
UPSERT = """
INSERT INTO bank.transactions (reference, source_id, account_id, customer_id, type, amount, balance_before, balance_after,
    currency, status, metadata, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (reference) DO UPDATE SET amount = excluded.amount, balance_before = excluded.balance_before,
    balance_after = excluded.balance_after, status = excluded.status, metadata = excluded.metadata"""


def main():
    wanted, page_size = int(sys.argv[1]), int(sys.argv[2])
    url = os.environ["LOGS_URL"].rstrip("/") + "/wallet-logs"
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {os.environ['LOGS_TOKEN']}"
    with psycopg.connect(os.environ["PEER_DATABASE"]) as database:
        cursor, done, begin = None, 0, time.perf_counter()
        while done < wanted:
            more = {"cursor": cursor} if cursor else {}
            page = session.get(url, params={"limit": page_size, **more}).json()
            for record in page["data"]:
                account, customer = database.execute(ACCOUNT, (record["wallet_id"],)).fetchone()
                metadata = {**record["metadata"], "narration": record.get("narration")}
                database.execute(UPSERT, (
                    f"WL-{record['id']}", record["id"], account, customer, record["type"], record["amount"],
                    record["balance_before"], record["balance_after"], record["currency"], record["status"],
                    json.dumps(metadata), record["created_at"]))
                done += 1
            database.commit()
            cursor = page["meta"]["next_cursor"]
            if not cursor:
                break
        print(done, f"{time.perf_counter() - begin:.3f}")


if __name__ == "__main__":
    main()
