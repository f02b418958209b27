"""Brings the export of wallet logs into Postgres with dlt.

    dlt_logs.py merge|arrow WORKERS

`merge` is dlt's own REST source with write disposition merge on the id; `arrow` is a resource by hand that reads pages with
orjson and yields Arrow tables, with the strategy upsert. The environment gives LOGS_URL, LOGS_TOKEN, PEER_DATABASE (a URL) and
PEER_HOME (a folder for dlt's state). Prints the seconds of the pipeline's run, without the start of Python.
"""

import os
import sys
import time

PAGE_SIZE = 1000
AMOUNTS = ("amount", "balance_before", "balance_after")
COLUMNS = {
    "id": {"data_type": "text"},
    "metadata": {"data_type": "json"},
    "created_at": {"data_type": "timestamp"},
    **{name: {"data_type": "decimal", "precision": 20, "scale": 4} for name in AMOUNTS},
}
MODE, WORKERS = sys.argv[1], sys.argv[2]
URL, TOKEN = os.environ["LOGS_URL"].rstrip("/") + "/", os.environ["LOGS_TOKEN"]
# What makes dlt fast here: large buffers and files, no compression of what stays on this disk, CSV for COPY.
os.environ.update({
    "DLT_DATA_DIR": os.environ["PEER_HOME"],
    "RUNTIME__DLTHUB_TELEMETRY": "false",
    "RUNTIME__LOG_LEVEL": "ERROR",
    "EXTRACT__WORKERS": WORKERS,
    "NORMALIZE__WORKERS": WORKERS,
    "LOAD__WORKERS": WORKERS,
    "DATA_WRITER__BUFFER_MAX_ITEMS": "20000",
    "EXTRACT__DATA_WRITER__FILE_MAX_ITEMS": "50000",
    "NORMALIZE__DATA_WRITER__FILE_MAX_ITEMS": "50000",
    "EXTRACT__DATA_WRITER__DISABLE_COMPRESSION": "true",
    "NORMALIZE__DATA_WRITER__DISABLE_COMPRESSION": "true",
})

import dlt  # noqa: E402  It reads its settings when it is loaded.


def rest_source():
    from dlt.sources.rest_api import rest_api_source

    return rest_api_source({
        "client": {
            "base_url": URL,
            "auth": {"type": "bearer", "token": TOKEN},
            "paginator": {"type": "cursor", "cursor_path": "meta.next_cursor", "cursor_param": "cursor"},
        },
        "resources": [{
            "name": "transactions",
            "primary_key": "id",
            "write_disposition": "merge",
            "columns": COLUMNS,
            "endpoint": {"path": "wallet-logs", "params": {"limit": PAGE_SIZE}, "data_selector": "data"},
        }],
    }, max_table_nesting=0)


def arrow_source():
    import orjson
    import pyarrow as pa
    import pyarrow.compute as pc
    from dlt.sources.helpers import requests

    def replace(table, name, values):
        return table.set_column(table.schema.get_field_index(name), name, values)

    @dlt.resource(name="transactions", primary_key="id", columns=COLUMNS,
                  write_disposition={"disposition": "merge", "strategy": "upsert"})
    def transactions():
        session, cursor = requests.Session(), None
        session.headers["Authorization"] = f"Bearer {TOKEN}"
        while True:
            more = {"cursor": cursor} if cursor else {}
            answer = session.get(URL + "wallet-logs", params={"limit": PAGE_SIZE, **more})
            page = orjson.loads(answer.content)
            for record in page["data"]:
                record["metadata"] = orjson.dumps(record["metadata"]).decode()
            table = pa.Table.from_pylist(page["data"])
            for name in AMOUNTS:
                table = replace(table, name, pc.cast(table[name], pa.decimal128(20, 4)))
            seconds = pc.utf8_slice_codeunits(table["created_at"], 0, 19)
            instants = pc.strptime(seconds, "%Y-%m-%dT%H:%M:%S", "us").cast(pa.timestamp("us", "UTC"))
            yield replace(table, "created_at", instants)
            cursor = page["meta"]["next_cursor"]
            if not cursor:
                return

    return transactions()


def main():
    destination = dlt.destinations.postgres(os.environ["PEER_DATABASE"])
    pipeline = dlt.pipeline(pipeline_name=f"peer_{MODE}", dataset_name=f"dlt_{MODE}", destination=destination)
    source = {"merge": rest_source, "arrow": arrow_source}[MODE]()
    begin = time.perf_counter()
    pipeline.run(source, loader_file_format="csv")
    print(f"{time.perf_counter() - begin:.3f}")


if __name__ == "__main__":
    main()
