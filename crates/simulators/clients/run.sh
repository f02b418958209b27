#!/bin/sh
# Lets clients that others wrote read the simulators. Usage: run.sh [COMMAND…]; see README.md.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cache=${CROSSDOCK_CLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/crossdock-clients}

mkdir -p "$cache/node"
cp "$here/package.json" "$here/bitly.mjs" "$cache/node/"
(cd "$cache/node" && npm install --silent --no-audit --no-fund)
[ -x "$cache/python/bin/python" ] || python3 -m venv "$cache/python"
"$cache/python/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"

if [ $# -eq 0 ]; then
    (cd "$root" && cargo build --quiet --bin crossdock)
    set -- "$("$root/scripts/target-dir")/debug/crossdock" simulate bitly --listen 127.0.0.1:0 --count 1234 --seed 1
fi
output=$(mktemp)
"$@" >"$output" &
simulator=$!
trap 'kill "$simulator" 2>/dev/null || true; rm -f "$output"' EXIT

SIMULATOR=
while [ -z "$SIMULATOR" ]; do
    kill -0 "$simulator" 2>/dev/null || { echo "the simulator ended before it listened" >&2; exit 1; }
    SIMULATOR=$(head -n 1 "$output")
    sleep 0.1
done
export SIMULATOR
node "$cache/node/bitly.mjs"
"$cache/python/bin/python" "$here/bitly_sdk.py"
