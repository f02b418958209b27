"""Runs a command and watches it: resident memory over time, and processor time in all.

    sampled.py --memory FILE.tsv --usage FILE.json -- COMMAND…

The memory file has a line every quarter of a second: seconds since the start, and MB (10^6 bytes) that are resident. The exit
code is the command's; a signal that asks this program to end is handed on.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time

EVERY = 0.25


def resident_mb(process):
    try:
        with open(f"/proc/{process}/statm") as file:
            pages = int(file.read().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", required=True)
    parser.add_argument("--usage", required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    begin = time.monotonic()
    child = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    with open(options.memory, "w") as file:
        while True:
            megabytes = resident_mb(child.pid)
            if megabytes:
                file.write(f"{time.monotonic() - begin:.2f}\t{megabytes:.1f}\n")
            try:
                child.wait(EVERY)
                break
            except subprocess.TimeoutExpired:
                pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(options.usage, "w") as file:
        json.dump({"wall_seconds": round(time.monotonic() - begin, 3),
                   "cpu_seconds": round(used.ru_utime + used.ru_stime, 3)}, file)
    sys.exit(child.returncode if child.returncode >= 0 else 128 - child.returncode)


if __name__ == "__main__":
    main()
