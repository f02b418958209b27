# What people use today for the same export, into tables with equal indexes and without foreign keys; Crossdock beside them in
# each repetition. Every peer has its table made from a small export first, so that it finds indexes and no rows.
# shellcheck shell=bash

PEERS_DIR="${BENCH_PEERS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/crossdock-bench}"

prepare_ledger_peers() {
  "$ROOT/scripts/pg" install
  python3 -c 'import venv, ensurepip' 2>/dev/null || die "Python's venv is missing; it is in Debian's package python3-venv"
  "$BENCH/peers/install.sh" "$PEERS_DIR" || die "the peers could not be installed into $PEERS_DIR"
}

bench_ledger_peers() {
  local round count="$LEDGER_RECORDS" small
  start_tuned_postgres
  export_logs 2000
  small="$LOGS_PID"
  fresh_database ledger_peers
  run_dlt merge 1 >/dev/null
  run_dlt arrow 1 >/dev/null
  run_singer >/dev/null
  peer_indexes dlt_merge unique
  peer_indexes dlt_arrow unique
  # It has made the id its primary key.
  peer_indexes singer
  stop "$small"
  query ledger_peers "COPY (SELECT schemaname, indexdef FROM pg_indexes WHERE tablename = 'transactions' ORDER BY 1, 2)
    TO STDOUT" >"$OUT/ledger-peers-indexes.tsv"
  export_logs "$count"
  for ((round = 1; round <= REPEAT; round++)); do
    peers_product "$round" "$count"
    peers_dlt merge "$round" "$count"
    peers_dlt arrow "$round" "$count"
    peers_singer "$round" "$count"
    # As it was first written, with pages of 100; larger ones are beside it.
    peers_loop one_loop 100 "$round" "$count"
    peers_loop one_loop_of_1000 1000 "$round" "$count"
  done
  stop "$LOGS_PID"
  drop_database ledger_peers
}

# peer_indexes SCHEMA [unique]
peer_indexes() {
  if [ "${2:-}" = unique ]; then query ledger_peers "CREATE UNIQUE INDEX ON $1.transactions (id)"; fi
  query ledger_peers "CREATE INDEX ON $1.transactions (wallet_id)"
  query ledger_peers "CREATE INDEX ON $1.transactions (customer_id)"
}

# empty_peer SCHEMA
empty_peer() {
  query ledger_peers "TRUNCATE $1.transactions"
  rm -rf "$WORK/peer"
  settle_postgres
}

# peer_arrived SCHEMA COUNT
peer_arrived() {
  local rows
  rows="$(query ledger_peers "SELECT count(*) || '/' || count(DISTINCT id) FROM $1.transactions")"
  [ "$rows" = "$2/$2" ] || die "$1 brought $rows rows of $2"
}

# run_dlt merge|arrow WORKERS: its seconds.
run_dlt() {
  LOGS_URL="$LOGS_URL" LOGS_TOKEN="$LOGS_TOKEN" PEER_DATABASE="$(peer_address ledger_peers)" PEER_HOME="$WORK/peer" \
    timeout 3600 "$PEERS_DIR/dlt/bin/python" "$BENCH/peers/dlt_logs.py" "$1" "$2" 2>"$WORK/peer.err" | tail -n 1 ||
    { tail -n 20 "$WORK/peer.err" >&2; die "dlt failed"; }
}

run_singer() {
  local place="${POSTGRES_URL#*@}"
  place="${place%%/*}"
  LOGS_URL="$LOGS_URL" LOGS_TOKEN="$LOGS_TOKEN" PEER_HOST="${place%:*}" PEER_PORT="${place##*:}" PEER_USER=postgres \
    PEER_NAME=ledger_peers \
    timeout 3600 "$BENCH/peers/singer.sh" "$PEERS_DIR/tap" "$PEERS_DIR/target" "$WORK/peer" ||
    { tail -n 5 "$WORK/peer"/*.log >&2; die "the tap and the target failed"; }
}

# peer_address DATABASE: with the scheme and the password that Python's libraries ask for.
peer_address() { address "$1" | sed 's|^postgres://postgres@|postgresql://postgres:unused@|'; }

# peers_product ROUND COUNT
peers_product() {
  fresh_bank ledger_run "$2"
  migrate "ledger-peers-crossdock-$1.json" ledger_run "$2" imported
  record_migration ledger.peers.crossdock "$1" "ledger-peers-crossdock-$1.json"
  drop_database ledger_run
}

# peers_dlt merge|arrow ROUND COUNT: with one worker, for merge with two as well, and the better of both counts.
peers_dlt() {
  local workers seconds best=
  for workers in 1 2; do
    if [ "$1" = arrow ] && [ "$workers" = 2 ]; then continue; fi
    empty_peer "dlt_$1"
    seconds="$(run_dlt "$1" "$workers")"
    peer_arrived "dlt_$1" "$3"
    record "ledger.peers.dlt_$1.seconds_with_$workers" "$2" "$seconds" s
    best="$(printf '%s\n' $best "$seconds" | sort -g | head -n 1)"
  done
  record "ledger.peers.dlt_$1.speed" "$2" "$(divide "$3" "$best")" records/s
}

# peers_singer ROUND COUNT
peers_singer() {
  local seconds
  empty_peer singer
  seconds="$(run_singer)"
  peer_arrived singer "$2"
  record ledger.peers.singer.speed "$1" "$(divide "$2" "$seconds")" records/s
}

# peers_loop NAME PAGE-SIZE ROUND COUNT: of its first pages; it is too slow for all.
peers_loop() {
  local records seconds
  fresh_bank ledger_run "$4"
  read -r records seconds < <(LOGS_URL="$LOGS_URL" LOGS_TOKEN="$LOGS_TOKEN" PEER_DATABASE="$(peer_address ledger_run)" \
    timeout 3600 "$PEERS_DIR/dlt/bin/python" "$BENCH/peers/one_loop.py" "$LEDGER_LOOP" "$2")
  [ "$(query ledger_run 'SELECT count(*) FROM bank.transactions')" = "$records" ] || die "the loop wrote other rows"
  record "ledger.peers.$1.speed" "$3" "$(divide "$records" "$seconds")" records/s
  drop_database ledger_run
}
