#!/usr/bin/env python3
"""Writes summary.md of one run from its raw data: medians, ratios, and each goal with PASS or MISS.

    summary.py RUN-FOLDER

It reads figures.tsv (figure, repetition, value, unit), machine.json and, for its drawings, the series kept beside them, so
it can be repeated at any time. A ratio is the median of the ratios within each repetition, since what is compared ran next to each other there.
"""

import json
import os
import statistics
import sys
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools"))
import plots  # noqa: E402


class Figures:
    """The values of a run, by figure and repetition."""

    def __init__(self, path):
        self.values, self.units = {}, {}
        with open(path) as file:
            for line in file:
                figure, repetition, value, unit = line.rstrip("\n").split("\t")
                self.units[figure] = unit
                self.values.setdefault(figure, []).append((repetition, value))

    def numbers(self, figure):
        return [float(value) for _, value in self.values.get(figure, [])]

    def median(self, figure):
        numbers = self.numbers(figure)
        return statistics.median(numbers) if numbers else None

    def ratio(self, figure, base):
        """Of medians where the repetitions do not pair up."""
        above, below = dict(self.values.get(figure, [])), dict(self.values.get(base, []))
        pairs = [float(above[key]) / float(below[key]) for key in above if key in below and float(below[key])]
        return statistics.median(pairs) if pairs else None


@dataclass
class Goal:
    """What must hold: the figure, or its ratio to a base, is at least or at most so much."""

    text: str
    figure: str
    limit: float
    at_most: bool = False
    base: str = None

    def value(self, figures):
        return figures.ratio(self.figure, self.base) if self.base else figures.median(self.figure)

    def holds(self, value):
        return value <= self.limit if self.at_most else value >= self.limit

    def wanted(self):
        return f"{'≤' if self.at_most else '≥'} {shown(self.limit)}"


GOALS = [
    Goal("import, SQLite, links/s", "import.sqlite.speed", 12_000),
    Goal("import, Postgres, links/s", "import.postgres.speed", 8_000),
    Goal("import, SQLite, peak memory, MB", "import.sqlite.peak_memory", 150, at_most=True),
    Goal("import, Postgres, peak memory, MB", "import.postgres.peak_memory", 150, at_most=True),
    Goal("large account, SQLite, peak memory, MB", "memory.sqlite.large.peak_memory", 150, at_most=True),
    Goal("large ÷ small account, SQLite, memory", "memory.sqlite.large.peak_memory", 1.2, at_most=True,
         base="memory.sqlite.small.peak_memory"),
    Goal("large ÷ small account, SQLite, speed", "memory.sqlite.large.speed", 0.85, base="memory.sqlite.small.speed"),
    Goal("large account, Postgres, peak memory, MB", "memory.postgres.large.peak_memory", 150, at_most=True),
    Goal("large ÷ small account, Postgres, memory", "memory.postgres.large.peak_memory", 1.2, at_most=True,
         base="memory.postgres.small.peak_memory"),
    Goal("large ÷ small account, Postgres, speed", "memory.postgres.large.speed", 0.85,
         base="memory.postgres.small.speed"),
    Goal("redirects ÷ bare peer, requests/s", "redirect.few.hot.speed", 0.8, base="redirect.peer.hot.speed"),
    Goal("redirects, p99, ms", "redirect.few.hot.p99", 3, at_most=True),
    Goal("redirects with many ÷ with few links, requests/s", "redirect.many.hot.speed", 0.9,
         base="redirect.few.hot.speed"),
    Goal("clicks written ÷ redirects answered", "redirect.few.clicks_written", 1, base="redirect.few.answered"),
    Goal("clicks dropped", "redirect.few.clicks_dropped", 0, at_most=True),
    Goal("demo, seconds", "demo.seconds", 10, at_most=True),
    Goal("ledger ÷ two COPY sessions", "ledger.plain.speed", 0.55, base="ledger.plain.copy_limit"),
    Goal("ledger ÷ two COPY sessions, with foreign keys", "ledger.keys.speed", 0.5, base="ledger.keys.copy_limit"),
    Goal("ledger, all unchanged ÷ first time", "ledger.again.speed", 1.2, base="ledger.plain.speed"),
    Goal("ledger, peak memory, MB", "ledger.plain.peak_memory", 200, at_most=True),
    Goal("large ledger ÷ two COPY sessions", "ledger.large.plain.speed", 0.55, base="ledger.large.plain.copy_limit"),
    Goal("large ledger ÷ two COPY sessions, with foreign keys", "ledger.large.keys.speed", 0.5,
         base="ledger.large.keys.copy_limit"),
    Goal("large ledger, last third by first third ÷ COPY's own", "ledger.large.plain.last_to_first_third", 1,
         base="ledger.large.plain.copy_last_to_first_third"),
    Goal("large ledger, peak memory, MB", "ledger.large.plain.peak_memory", 200, at_most=True),
    Goal("large ledger, memory, second half ÷ first half", "ledger.large.plain.memory_growth", 1.1, at_most=True),
    Goal("ledger ÷ fetching alone, 20 ms a page", "ledger.slow.speed", 0.9, base="ledger.slow.fetch_limit"),
    Goal("ledger, 8 partitions ÷ one, 200 ms a page", "ledger.eight_partitions.speed", 6,
         base="ledger.one_partition.speed"),
    Goal("ledger, two processes ÷ one", "ledger.workers_two.speed", 1.5, base="ledger.workers_one.speed"),
    Goal("ledger ÷ dlt's REST source with merge", "ledger.peers.crossdock.speed", 6, base="ledger.peers.dlt_merge.speed"),
    Goal("ledger ÷ dlt by hand, Arrow tables and upsert", "ledger.peers.crossdock.speed", 2,
         base="ledger.peers.dlt_arrow.speed"),
    Goal("ledger ÷ Singer's tap and target", "ledger.peers.crossdock.speed", 8, base="ledger.peers.singer.speed"),
    Goal("ledger ÷ one loop, a commit for each page of 100", "ledger.peers.crossdock.speed", 30,
         base="ledger.peers.one_loop.speed"),
    Goal("ledger's demo, seconds", "ledger.demo.seconds", 25, at_most=True),
]

# Reported beside the goals: how near to what is possible at all.
RATIOS = [
    ("import, SQLite ÷ bare insert loop of the same rows", "import.sqlite.speed", "import.sqlite.write_limit"),
    ("import, SQLite ÷ fetching alone", "import.sqlite.speed", "import.fetch_limit"),
    ("import, Postgres ÷ bare COPY of the same rows", "import.postgres.speed", "import.postgres.write_limit"),
    ("import, Postgres ÷ fetching alone", "import.postgres.speed", "import.fetch_limit"),
    ("redirects, CPU a request ÷ bare peer", "redirect.few.hot.cpu", "redirect.peer.hot.cpu"),
    ("unknown slugs ÷ known slugs, few links, requests/s", "redirect.few.unknown.speed", "redirect.few.hot.speed"),
    ("uniform ÷ hot slugs, many links, requests/s", "redirect.many.uniform.speed", "redirect.many.hot.speed"),
    ("unknown ÷ hot slugs, many links, requests/s", "redirect.many.unknown.speed", "redirect.many.hot.speed"),
    ("ledger ÷ fetching alone", "ledger.plain.speed", "ledger.fetch_limit"),
    ("ledger with its certificate ÷ two COPY sessions", "ledger.plain.speed_with_certificate",
     "ledger.plain.copy_limit"),
    ("large ledger with its certificate ÷ two COPY sessions", "ledger.large.plain.speed_with_certificate",
     "ledger.large.plain.copy_limit"),
    ("large ledger with foreign keys, last third by first third ÷ COPY's own",
     "ledger.large.keys.last_to_first_third", "ledger.large.keys.copy_last_to_first_third"),
    ("ledger ÷ one loop, a commit for each page of 1,000", "ledger.peers.crossdock.speed",
     "ledger.peers.one_loop_of_1000.speed"),
]


def shown(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}".rstrip("0").rstrip(".")


def verdicts(figures, judged):
    rows = ["| goal | wanted | measured | |", "| --- | ---: | ---: | --- |"]
    missed = 0
    for goal in GOALS:
        value = goal.value(figures)
        if value is None:
            rows.append(f"| {goal.text} | {goal.wanted()} | – | not measured |")
            continue
        verdict = "not judged"
        if judged:
            verdict = "PASS" if goal.holds(value) else "MISS"
            missed += verdict == "MISS"
        rows.append(f"| {goal.text} | {goal.wanted()} | {shown(value)} | {verdict} |")
    return rows, missed


def ratios(figures):
    rows = ["| ratio | measured |", "| --- | ---: |"]
    for text, figure, base in RATIOS:
        value = figures.ratio(figure, base)
        if value is not None:
            rows.append(f"| {text} | {shown(value)} |")
    return rows


def medians(figures):
    rows = ["| figure | median | unit | lowest … highest | n |", "| --- | ---: | --- | --- | ---: |"]
    for figure, unit in figures.units.items():
        if unit == "version":
            continue
        numbers = figures.numbers(figure)
        span = f"{shown(min(numbers))} … {shown(max(numbers))}"
        rows.append(f"| {figure} | {shown(statistics.median(numbers))} | {unit} | {span} | {len(numbers)} |")
    return rows


def shares(figures):
    """Where a ledger's time goes. The workers' time holds the database's work for chunks; what is left of it is reading the
    records by type, their digests, the way to the database and back, and waiting for commits."""
    rows = ["| of the ledger's time | seconds | share |", "| --- | ---: | ---: |"]

    def value(name):
        return figures.median(f"ledger.shares.{name}") or 0.0

    def line(text, seconds, whole):
        rows.append(f"| {text} | {seconds:.2f} | {100 * seconds / whole:.0f} % of {whole:.2f} |")

    wall, worked = value("seconds"), value("process")
    if not wall or not worked:
        return []
    line("fetching, beside everything else", value("fetch"), wall)
    line("staging, in the database", value("database.stage"), wall)
    parts = [("rows into `staged`, in the database", "copy_to_staged"), ("map, insert and proof, in the database", "write"),
             ("manifest and proofs, in the database", "manifest"), ("settling, in the database", "settle")]
    for text, name in parts:
        line(f"workers: {text}", value(f"database.{name}"), worked)
    rest = worked - sum(value(f"database.{name}") for _, name in parts)
    line("workers: reading records, digests, waiting for the database and its commits", rest, worked)
    used = [(name, value(f"cpu_{name}")) for name in ("crossdock", "database", "simulator")]
    whole = sum(seconds for _, seconds in used)
    for name, seconds in used:
        line(f"processor time with the certificate: {name}", seconds, whole)
    return ["", "## Where a ledger's time goes", "", *rows]


def heading(machine, figures):
    peer = ", ".join(f"{name} {version}" for name, version in machine["peer"].items())
    postgres = figures.values.get("machine.postgres_version", [("", "not used")])[-1][1].replace("_", " ")
    lines = [
        f"# Figures of {machine['date'][:10]}, commit {machine['commit'][:10]}",
        "",
        f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']} GiB, {machine['system']}, Linux "
        f"{machine['kernel']}, {machine['file_system']}; 8 kB on the disk in {machine['sync_of_8_kb_micros']} µs; load "
        f"{machine['load_before']:.1f} at the start.",
        f"{machine['crossdock']}, {machine['rustc']}, Postgres {postgres}, peer: {peer}, {machine['wrk']}.",
    ]
    if machine["uncommitted_changes"]:
        lines.append("**The working copy had changes that were not committed.**")
    if machine["quick"]:
        lines.append("**A quick run: sizes too small to judge anything.**")
    if machine["debug_build"]:
        lines.append("**A debug build: nothing is judged.**")
    return lines


def main():
    folder = sys.argv[1]
    figures = Figures(os.path.join(folder, "figures.tsv"))
    with open(os.path.join(folder, "machine.json")) as file:
        machine = json.load(file)
    rows, missed = verdicts(figures, not machine["quick"] and not machine["debug_build"])
    lines = heading(machine, figures)
    lines += ["", "## Goals", "", *rows, "", "## Beside the limits", "", *ratios(figures)]
    lines += shares(figures) + plots.draw(folder, figures)
    lines += ["", "## All figures", "", *medians(figures), ""]
    text = "\n".join(lines)
    with open(os.path.join(folder, "summary.md"), "w") as file:
        file.write(text)
    print(text)
    if missed:
        print(f"{missed} goals were missed", file=sys.stderr)


if __name__ == "__main__":
    main()
