# What all parts of the benches share. Sourced by run.sh; keeps the caller's `set -euo pipefail`.
# shellcheck shell=bash

say() { printf 'bench: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
now() { date +%s.%N; }

# ---- what a run leaves behind ---------------------------------------------------------------------------------------

# record FIGURE REPETITION VALUE UNIT: one line on the terminal, one row in the run's figures.tsv.
record() {
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$OUT/figures.tsv"
  printf '%-48s #%s  %14s %s\n' "$1" "$2" "$3" "$4"
}

# field FILE KEY: a value of the last JSON object in a file; fails if it is missing.
field() {
  python3 -c '
import json, sys
value = json.loads(open(sys.argv[1]).read().strip().splitlines()[-1])[sys.argv[2]]
print(value if value is not None else "")' "$1" "$2"
}

divide() { awk -v a="$1" -v b="$2" -v digits="${3:-1}" 'BEGIN { printf "%.*f\n", digits, a / b }'; }
minus() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.4f\n", a - b }'; }

# ---- servers, stopped at the end ------------------------------------------------------------------------------------

SERVERS=()

# start NAME CMD…: runs a server in the background; its process is in STARTED, its output in $WORK/NAME.{out,err}.
start() {
  local name="$1"
  shift
  "$@" >"$WORK/$name.out" 2>"$WORK/$name.err" </dev/null &
  STARTED=$!
  SERVERS+=("$STARTED")
}

# bounded SECONDS CMD…: runs a command for at most so long. It runs beside the script, so that a signal to the script
# is acted on at once and not when the command ends.
CHILD=
bounded() {
  local status=0
  timeout "$@" </dev/null &
  CHILD=$!
  wait "$CHILD" || status=$?
  CHILD=
  return "$status"
}

# stop PID: ends one server as an operator would, and waits at most 20 s.
stop() {
  local try
  kill -TERM "$1" 2>/dev/null || return 0
  for ((try = 0; try < 200; try++)); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}

# wait_for PID FILE PATTERN SECONDS: until the server has written a line like PATTERN.
wait_for() {
  local try
  for ((try = 0; try < $4 * 10; try++)); do
    if grep -q "$3" "$2" 2>/dev/null; then return 0; fi
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 20 "${2%.*}.err" >&2 || true
  die "a server did not start; the end of its log is above"
}

cleanup() {
  local status=$? pid folder
  trap - EXIT
  trap '' INT TERM HUP
  # `timeout` hands the signal on to what it runs.
  if [ -n "$CHILD" ]; then stop "$CHILD"; fi
  for pid in "${SERVERS[@]}"; do stop "$pid"; done
  for folder in "$WORK/pg" "$WORK/pg-tuned"; do
    if [ -d "$folder" ]; then CROSSDOCK_PG_DIR="$folder" "$ROOT/scripts/pg" stop || true; fi
  done
  rm -rf "$WORK"
  if [ "$status" -ne 0 ]; then say "the run did not end; what it measured so far is in $OUT"; fi
  exit "$status"
}

# ---- tools ----------------------------------------------------------------------------------------------------------

# need COMMAND PACKAGE: installs a missing tool from Debian's packages as root; as a user prints the command and stops.
need() {
  command -v "$1" >/dev/null 2>&1 && return 0
  local command="apt-get install -y --no-install-recommends $2"
  command -v apt-get >/dev/null 2>&1 || die "$1 is missing (Debian's package is called $2); please install it"
  [ "$(id -u)" -eq 0 ] || die "$1 is missing. Install it with:  sudo $command"
  say "$1 is missing: $command"
  { DEBIAN_FRONTEND=noninteractive apt-get update -q && DEBIAN_FRONTEND=noninteractive $command; } >&2 ||
    die "the installation failed; install it by hand:  $command"
  command -v "$1" >/dev/null 2>&1 || die "$2 is installed, and still there is no $1"
}

# The private Postgres of scripts/pg, durable as in production; its URL is in POSTGRES_URL.
start_postgres() { use_postgres pg; }

# The same with room for millions of rows, as somebody would set a server that holds them: what ledgers are measured on.
start_tuned_postgres() {
  use_postgres pg-tuned
  [ "$(query postgres 'SHOW shared_buffers')" != 1GB ] || return 0
  local setting
  for setting in "shared_buffers = '1GB'" "max_wal_size = '4GB'" "checkpoint_timeout = '15min'" "work_mem = '32MB'" \
    "maintenance_work_mem = '256MB'"; do
    query postgres "ALTER SYSTEM SET $setting"
  done
  restart_tuned_postgres
}

restart_tuned_postgres() {
  CROSSDOCK_PG_DIR="$WORK/pg-tuned" "$ROOT/scripts/pg" restart >/dev/null || die "Postgres did not start again"
}

# use_postgres FOLDER
use_postgres() {
  POSTGRES_URL="$(CROSSDOCK_PG_DIR="$WORK/$1" "$ROOT/scripts/pg" start)" || die "Postgres did not start"
  find_psql
  [ "$(query postgres 'SHOW fsync')/$(query postgres 'SHOW synchronous_commit')" = on/on ] ||
    die "fsync or synchronous_commit is off: that would measure nothing of use"
  grep -q '^machine.postgres_version' "$OUT/figures.tsv" ||
    record machine.postgres_version 1 "$(query postgres 'SHOW server_version' | tr -s ' ' _)" version
}

find_psql() {
  local folder
  if command -v psql >/dev/null 2>&1; then PSQL="$(command -v psql)"; return 0; fi
  for folder in "${CROSSDOCK_PG_BIN:-/nowhere}" /usr/lib/postgresql/*/bin /usr/pgsql-*/bin; do
    if [ -x "$folder/psql" ]; then PSQL="$folder/psql"; fi
  done
  [ -n "${PSQL:-}" ] || die "psql is missing; it is in Debian's package postgresql-client"
}

# address DATABASE: its URL on the private server.
address() { printf '%s/%s\n' "${POSTGRES_URL%/*}" "$1"; }

# query DATABASE SQL
query() { timeout 600 "$PSQL" -qXAt -v ON_ERROR_STOP=1 -d "$(address "$1")" -c "$2"; }

fresh_database() {
  PGOPTIONS="-c client_min_messages=warning" query postgres "DROP DATABASE IF EXISTS $1"
  query postgres "CREATE DATABASE $1"
}

# What earlier steps left to write must not be written during the next one.
settle_postgres() { query postgres CHECKPOINT; }
settle_files() { sync -f "$WORK"; }

# ---- the simulated account ------------------------------------------------------------------------------------------

# simulate COUNT: a Bitly account in a process of its own, answering at once. Sets BITLY_URL, _TOKEN, _GROUP, _DOMAIN, _PID.
simulate() {
  start "bitly-$1" "$BIN" simulate bitly --count "$1" --seed 1
  BITLY_PID=$STARTED
  wait_for "$BITLY_PID" "$WORK/bitly-$1.out" '"url"' 60
  BITLY_URL="$(field "$WORK/bitly-$1.out" url)"
  BITLY_TOKEN="$(field "$WORK/bitly-$1.out" token)"
  BITLY_GROUP="$(field "$WORK/bitly-$1.out" group)"
  BITLY_DOMAIN="$(field "$WORK/bitly-$1.out" domain)"
}

# import FILE DATABASE-URL COUNT: one import at no pace. Its last object goes to the run's folder, as FILE; an import
# that is not complete and clean ends the run, since its speed would mean nothing. WALL: seconds of the whole process.
import() {
  local file="$OUT/$1" links begin
  begin="$(now)"
  CROSSDOCK_SOURCE_TOKEN="$BITLY_TOKEN" bounded 1800 "$BIN" import bitly --database "$2" --domain "$BITLY_DOMAIN" \
    --base-url "$BITLY_URL" --pace none --json >"$file" 2>"$WORK/import.err" ||
    { tail -n 20 "$WORK/import.err" >&2; die "the import failed"; }
  WALL="$(minus "$(now)" "$begin")"
  links="$(field "$file" imported)"
  [ "$links" = "$3" ] && [ "$(field "$file" outcome)" = clean ] ||
    die "the import brought $links of $3 links over, outcome $(field "$file" outcome)"
}
