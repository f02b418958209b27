"""Draws what is looked at rather than read, as SVG files beside a run's summary; nothing but Python is needed.

speeds.svg has a bar for the ledger, its limits and its peers; large.svg shows a large ledger from its start to its last chunk:
how fast records were settled, and the memory of the process.
"""

import glob
import os
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 760, 250, 90
BARS = [
    ("two COPY sessions", "ledger.plain.copy_limit"),
    ("Crossdock", "ledger.plain.speed"),
    ("Crossdock, all unchanged", "ledger.again.speed"),
    ("two COPY sessions, foreign keys", "ledger.keys.copy_limit"),
    ("Crossdock, foreign keys", "ledger.keys.speed"),
    ("dlt by hand, Arrow, upsert", "ledger.peers.dlt_arrow.speed"),
    ("dlt's REST source, merge", "ledger.peers.dlt_merge.speed"),
    ("Singer's tap and target", "ledger.peers.singer.speed"),
    ("one loop, pages of 100", "ledger.peers.one_loop.speed"),
]
OURS, OTHERS, INK = "#0b7285", "#adb5bd", "#212529"
# Points of a curve; more would show the noise of single chunks.
STEPS = 60


def text(x, y, words, anchor="start", size=13):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{INK}" '
            f'font-family="sans-serif">{escape(words)}</text>')


def page(height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">'
            f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n')


def bars(figures):
    known = [(name, figures.median(figure)) for name, figure in BARS if figures.median(figure)]
    if not known:
        return None
    longest = max(value for _, value in known)
    parts = [text(10, 22, "records a second, medians", size=15)]
    for number, (name, value) in enumerate(known):
        y, width = 40 + 28 * number, (WIDTH - LEFT - RIGHT) * value / longest
        color = OURS if name.startswith("Crossdock") else OTHERS
        parts += [text(LEFT - 8, y + 15, name, "end"), text(LEFT + width + 6, y + 15, f"{value:,.0f}"),
                  f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="20" fill="{color}"/>']
    return page(50 + 28 * len(known), parts)


def series(path):
    with open(path) as file:
        return [tuple(float(value) for value in line.split("\t")) for line in file if line.strip()]


def curve(points, top, x_end, y_end, height, color):
    """A line through points, in a field of its own with its highest value at the side."""
    left, width = 20, WIDTH - 20 - RIGHT
    path = " ".join(f"{left + width * x / x_end:.1f},{top + height - height * y / y_end:.1f}" for x, y in points)
    return [f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="{OTHERS}"/>',
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>',
            text(left + width + 6, top + 10, f"{y_end:,.0f}"), text(left + width + 6, top + height, "0")]


def rates(settled):
    """Records a second in equal steps of time."""
    end, points, place, before = settled[-1][0], [], 0, 0.0
    for step in range(1, STEPS + 1):
        while place < len(settled) and settled[place][0] <= end * step / STEPS:
            place += 1
        total = settled[place - 1][1] if place else 0.0
        points.append((end * (step - 0.5) / STEPS, (total - before) * STEPS / end))
        before = total
    return points


def large(folder):
    paths = sorted(glob.glob(os.path.join(folder, "ledger-large-plain-*-settled.tsv")))
    if not paths:
        return None
    settled = series(paths[-1])
    memory = series(paths[-1].replace("-settled.tsv", "-memory.tsv"))
    speeds, end = rates(settled), max(settled[-1][0], memory[-1][0])
    parts = [text(20, 22, f"records settled a second, over {end:.0f} s; without foreign keys, the last repetition", size=15),
             *curve(speeds, 34, end, max(value for _, value in speeds), 180, OURS),
             text(20, 244, "memory of the process, MB; the certificate is at the end", size=15),
             *curve(memory, 256, end, max(value for _, value in memory), 100, INK)]
    return page(370, parts)


def draw(folder, figures):
    """Writes the drawings for which there are figures; the lines that show them in the summary."""
    lines = []
    for name, drawing in (("speeds.svg", bars(figures)), ("large.svg", large(folder))):
        if drawing:
            with open(os.path.join(folder, name), "w") as file:
                file.write(drawing)
            lines.append(f"![{name}]({name})")
    return ["", "## Drawn", "", "\n\n".join(lines)] if lines else []
