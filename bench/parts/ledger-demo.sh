# The ledger's demo from a built binary to its certificate, with the private Postgres that it starts, as
# `make demo-ledger` runs it.
# shellcheck shell=bash

prepare_ledger_demo() { "$ROOT/scripts/pg" install; }

bench_ledger_demo() {
  local round begin end file
  "$BIN" demo ledger --help >/dev/null 2>&1 || die "this binary has no demo of ledgers"
  for ((round = 1; round <= REPEAT; round++)); do
    file="$OUT/ledger-demo-$round.json"
    settle_files
    begin="$(now)"
    # shellcheck disable=SC2016
    bounded 600 env -C "$ROOT" -u CROSSDOCK_PG_DIR scripts/pg run sh -c \
      'exec "$0" demo ledger --count "$1" --database "$CROSSDOCK_TEST_POSTGRES" --exit --json' "$BIN" "$LEDGER_DEMO" \
      >"$file" 2>"$WORK/demo.err" || { tail -n 20 "$WORK/demo.err" >&2; die "the demo did not end well"; }
    end="$(now)"
    record ledger.demo.seconds "$round" "$(awk -v s="$(minus "$end" "$begin")" 'BEGIN { printf "%.2f", s }')" s
  done
}
