#!/usr/bin/env python3
"""Writes summary.md of one run from its raw data: medians, ratios, and each goal with PASS or MISS.

    summary.py RUN-FOLDER

It reads figures.tsv (figure, repetition, value, unit) and machine.json and nothing else, so it can be repeated at any
time. A ratio is the median of the ratios within each repetition, since what is compared ran next to each other there.
"""

import json
import os
import statistics
import sys
from dataclasses import dataclass


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
    lines += ["", "## All figures", "", *medians(figures), ""]
    text = "\n".join(lines)
    with open(os.path.join(folder, "summary.md"), "w") as file:
        file.write(text)
    print(text)
    if missed:
        print(f"{missed} goals were missed", file=sys.stderr)


if __name__ == "__main__":
    main()
