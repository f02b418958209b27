#!/usr/bin/env bash
# Measures Crossdock beside its limits and a peer, on this machine, in one run.
#
#   bench/run.sh [--quick] [--full] [--into DIR] [PART…]
#
#   parts        import  memory  redirect  demo
#                ledger-limit  ledger-source  ledger-workers  ledger-shares  ledger-peers  ledger-demo  ledger-large
#                `ledger` stands for all of its own. None named: all but ledger-large, which --full adds.
#   --quick      small sizes: shows that the benches work, judges nothing; kept in the target folder
#   --full       also the long ones: memory on Postgres, redirects with 5,000,000 links, ledgers of 3,000,000 records
#                (the same as BENCH_FULL=1)
#   --into DIR   adds parts to a run that was begun with the same commit and the same sizes
#
# Raw data, the machine and summary.md go to bench/runs/DATE-COMMIT/. bench/README.md says what each figure means.
#
# CROSSDOCK_BIN        measure this binary instead of building one (a debug build is never judged)
# BENCH_PEER_BIN       the same for the peer of the redirects
# BENCH_REPEAT         repetitions of each measurement (3)
# BENCH_WRK_SECONDS    length of one measurement with wrk (6)
# BENCH_PEERS_DIR      where the ledger's peers are installed ($XDG_CACHE_HOME/crossdock-bench)
# BENCH_LEDGER_RECORDS, BENCH_LEDGER_LARGE   records of a ledger, and of a large one (300,000 and 3,000,000)
set -euo pipefail

BENCH="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"
ROOT="$(dirname "$BENCH")"
# shellcheck source=bench/lib.sh
. "$BENCH/lib.sh"
# shellcheck source=bench/ledger.sh
. "$BENCH/ledger.sh"
LEDGER_PARTS=(ledger-limit ledger-source ledger-workers ledger-shares ledger-peers ledger-demo ledger-large)
for part in import memory redirect demo "${LEDGER_PARTS[@]}"; do
  # shellcheck disable=SC1090
  . "$BENCH/parts/$part.sh"
done

usage() { sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//;p;}' "$0" >&2; exit 2; }

QUICK=0
FULL="${BENCH_FULL:-0}"
INTO=
PARTS=()
while [ "$#" -gt 0 ]; do
  case "$1" in
    --quick) QUICK=1 ;;
    --full) FULL=1 ;;
    --into) [ "$#" -ge 2 ] || usage; INTO="$2"; shift ;;
    import | memory | redirect | demo | ledger-limit | ledger-source | ledger-workers | ledger-shares | ledger-peers | \
      ledger-demo | ledger-large) PARTS+=("$1") ;;
    ledger) PARTS+=("${LEDGER_PARTS[@]}") ;;
    *) usage ;;
  esac
  shift
done
if [ "${#PARTS[@]}" -eq 0 ]; then
  PARTS=(import memory redirect demo "${LEDGER_PARTS[@]}")
  # The large one is the last of its list.
  if [ "$FULL" != 1 ]; then unset 'PARTS[-1]'; fi
fi

if [ "$QUICK" = 1 ]; then
  REPEAT="${BENCH_REPEAT:-1}" WRK_SECONDS="${BENCH_WRK_SECONDS:-1}" WARM_SECONDS=2
  IMPORT_LINKS=1000 MEMORY_SMALL=500 MEMORY_LARGE=2000 REDIRECT_LINKS=2000 REDIRECT_MANY=20000 DEMO_LINKS=500
  LEDGER_RECORDS="${BENCH_LEDGER_RECORDS:-20000}" LEDGER_LARGE="${BENCH_LEDGER_LARGE:-60000}" LEDGER_PARTITIONED=16000
  LEDGER_LOOP=2000 LEDGER_DEMO=5000
else
  REPEAT="${BENCH_REPEAT:-3}" WRK_SECONDS="${BENCH_WRK_SECONDS:-6}" WARM_SECONDS=8
  IMPORT_LINKS=100000 MEMORY_SMALL=50000 MEMORY_LARGE=500000 REDIRECT_LINKS=100000 REDIRECT_MANY=5000000 DEMO_LINKS=5000
  LEDGER_RECORDS="${BENCH_LEDGER_RECORDS:-300000}" LEDGER_LARGE="${BENCH_LEDGER_LARGE:-3000000}" LEDGER_PARTITIONED=200000
  LEDGER_LOOP=20000 LEDGER_DEMO=100000
fi

need python3 python3
need timeout coreutils
# Settings of the person who runs this must not reach the binary that is measured.
GIVEN_BIN="${CROSSDOCK_BIN:-}"
while IFS= read -r name; do
  case "$name" in CROSSDOCK_PG_BIN | CROSSDOCK_PG_DIR) ;; *) unset "$name" ;; esac
done < <(compgen -e CROSSDOCK_ || true)

build() {
  TARGET="$("$ROOT/scripts/target-dir")"
  if [ -n "$GIVEN_BIN" ]; then
    BIN="$(realpath -e "$GIVEN_BIN")" || die "there is no binary at CROSSDOCK_BIN=$GIVEN_BIN"
  else
    cargo build --release --package crossdock-cli --manifest-path "$ROOT/Cargo.toml"
    BIN="$TARGET/release/crossdock"
  fi
}
build
# What is missing shows before the first measurement, not after an hour of them.
for part in "${PARTS[@]}"; do "prepare_${part//-/_}"; done

WORK="$(mktemp -d "${TMPDIR:-/tmp}/crossdock-bench-XXXXXX")"
# The database server runs as another user.
chmod 0755 "$WORK"
OUT="$WORK"
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# A folder of its own for each run: a second run of a day and commit does not touch the first.
new_folder() {
  local base="$BENCH/runs" commit name number=1
  [ "$QUICK" = 0 ] || base="$TARGET/bench"
  commit="$(git -C "$ROOT" rev-parse --short=10 HEAD 2>/dev/null || echo unknown)"
  name="$base/$(date -u +%Y-%m-%d)-$commit"
  OUT="$name"
  while [ -e "$OUT" ]; do
    number=$((number + 1))
    OUT="$name-$number"
  done
  mkdir -p "$OUT"
}

if [ -n "$INTO" ]; then
  OUT="$(realpath -e "$INTO")" || die "there is no run in $INTO"
  python3 "$BENCH/tools/machine.py" --check "$OUT/machine.json" --root "$ROOT" --binary "$BIN" --quick "$QUICK"
else
  new_folder
  python3 "$BENCH/tools/machine.py" --root "$ROOT" --binary "$BIN" --quick "$QUICK" --work "$WORK" >"$OUT/machine.json"
fi
touch "$OUT/figures.tsv"

# Time that the hypervisor gave to somebody else, in per cent of all; a noisy neighbour shows here.
cpu_times() { awk '/^cpu / { all = 0; for (i = 2; i <= 9; i++) all += $i; print $9, all }' /proc/stat; }

for part in "${PARTS[@]}"; do
  say "$part"
  before="$(cpu_times)"
  "bench_${part//-/_}"
  record "machine.steal_during_$part" 1 \
    "$(echo "$before $(cpu_times)" | awk '{ printf "%.1f", ($4 > $2) ? 100 * ($3 - $1) / ($4 - $2) : 0 }')" %
done

python3 "$BENCH/summary.py" "$OUT"
say "kept in $OUT"
