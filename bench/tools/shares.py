"""Adds up what the database spent on each stage of a migration, from the lines of pg_stat_statements.

    shares.py STATEMENTS.ndjson

Prints a line for each stage: its name and its seconds. Statements of several sessions run at once, so the sum may be
more than the time that passed. COPY counts the time of waiting for rows from the client too.
"""

import json
import re
import sys

# The first that fits.
STAGES = [
    ("stage", r"crossdock\.(staged_\w+|pages|segments|partitions)"),
    ("copy_to_staged", r"(COPY|TEMP TABLE|DROP TABLE) staged"),
    ("write", r"WITH mapped\b"),
    ("manifest", r"INTO crossdock\.(manifest_blocks|ledger_proofs)"),
    ("settle", r"crossdock\.(chunks|notes|quarantine|jobs|ledger_jobs|turns)"),
    ("certificate", r"\b(expected|found|unequal)\b|FROM crossdock\.(manifest_blocks|ledger_proofs)|SELECT count\(\*\) FROM \("),
]


def main():
    spent = {stage: 0.0 for stage, _ in STAGES} | {"other": 0.0}
    with open(sys.argv[1]) as file:
        for line in filter(str.strip, file):
            statement = json.loads(line)
            stage = next((name for name, words in STAGES if re.search(words, statement["query"])), "other")
            spent[stage] += float(statement["seconds"])
    for stage, seconds in spent.items():
        print(stage, f"{seconds:.3f}")


if __name__ == "__main__":
    main()
