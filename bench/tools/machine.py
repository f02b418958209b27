"""Describes the machine and what is measured on it, as one JSON object.

    machine.py --root REPOSITORY --binary CROSSDOCK --quick 0|1 --work FOLDER
    machine.py --root … --binary … --quick … --check machine.json     whether parts may be added to that run
"""

import argparse
import datetime
import hashlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time


def run(*command, cwd=None):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=cwd, check=False)
    except OSError:
        return None
    text = (done.stdout or done.stderr).strip()
    return text.splitlines()[0] if text else None


def first_match(path, pattern):
    try:
        with open(path) as file:
            found = re.search(pattern, file.read(), re.MULTILINE)
    except OSError:
        return None
    return found.group(1).strip() if found else None


def file_system(folder):
    """The type of what is mounted nearest above a folder."""
    folder = os.path.realpath(folder)
    with open("/proc/mounts") as file:
        mounts = [line.split()[1:3] for line in file]
    above = [(place, kind) for place, kind in mounts if os.path.commonpath([place, folder]) == place]
    return max(above, key=lambda mount: len(mount[0]))[1] if above else None


def sync_micros(folder):
    """Median time of writing 8 kB and having it on the disk: what every commit pays."""
    path = os.path.join(folder, "sync-probe")
    times = []
    handle = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        for _ in range(200):
            begin = time.perf_counter()
            os.pwrite(handle, b"\0" * 8192, 0)
            os.fdatasync(handle)
            times.append(time.perf_counter() - begin)
    finally:
        os.close(handle)
        os.unlink(path)
    return round(statistics.median(times) * 1e6, 1)


def locked_versions(root):
    """The versions of the peer's parts, from its lock file."""
    with open(os.path.join(root, "bench/redirect-peer/Cargo.lock")) as file:
        locked = dict(re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"', file.read()))
    return {name: locked.get(name) for name in ("axum", "hyper", "moka", "tokio")}


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def product(root, binary, quick):
    changed = run("git", "status", "--porcelain", "--", ".", ":!bench", cwd=root)
    return {
        "commit": run("git", "rev-parse", "HEAD", cwd=root),
        "uncommitted_changes": changed is not None,
        "crossdock": run(binary, "--version"),
        "binary_sha256": digest(binary),
        # Checked as the binary's folder, which is where cargo puts its profiles.
        "debug_build": os.path.basename(os.path.dirname(binary)) == "debug",
        "quick": quick == "1",
    }


def machine(work):
    memory = first_match("/proc/meminfo", r"^MemTotal:\s+(\d+)")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cpu": first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory) / 1024 / 1024, 1) if memory else None,
        "kernel": platform.release(),
        "system": first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'),
        "file_system": file_system(work),
        "sync_of_8_kb_micros": sync_micros(work),
        "load_before": os.getloadavg()[0],
    }


def versions(root):
    import sqlite3

    return {
        "rustc": run("rustc", "--version"),
        "python": platform.python_version(),
        "python_sqlite": sqlite3.sqlite_version,
        "wrk": run("wrk", "-v"),
        "peer": locked_versions(root),
    }


def check(path, now):
    with open(path) as file:
        before = json.load(file)
    for key in ("commit", "binary_sha256", "quick"):
        if before[key] != now[key]:
            raise SystemExit(f"that run was begun with another {key}: {before[key]}, now {now[key]}")


def main():
    parser = argparse.ArgumentParser()
    for name in ("root", "binary", "quick"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--work")
    parser.add_argument("--check")
    options = parser.parse_args()
    of_product = product(options.root, options.binary, options.quick)
    if options.check:
        check(options.check, of_product)
        return
    of_machine = machine(options.work)
    if of_machine["load_before"] > of_machine["cores"] / 2:
        print(f"bench: this machine is busy (load {of_machine['load_before']:.1f}): the figures will be worth little",
              file=sys.stderr)
    print(json.dumps({**of_product, **of_machine, **versions(options.root)}, indent=2))


if __name__ == "__main__":
    main()
