# End to end from the export into the example's own table, without and with foreign keys, each beside two COPY sessions of
# the same rows into the same table; then the same export once more, with nothing left to write.
# shellcheck shell=bash

prepare_ledger_limit() { "$ROOT/scripts/pg" install; }

bench_ledger_limit() {
  local round count="$LEDGER_RECORDS"
  start_tuned_postgres
  export_logs "$count"
  # Warms the simulator up, and leaves the rows that the limit copies.
  fresh_bank ledger_warm "$count"
  migrate ledger-warm.json ledger_warm "$count" imported
  rm "$OUT/ledger-warm.json"
  ready_rows ledger_warm "$count"
  cut_rows 1
  drop_database ledger_warm
  for ((round = 1; round <= REPEAT; round++)); do
    walk_logs ledger.fetch_limit "$round" "$count"
    # Who goes first changes, so that what drifts in the machine favours nobody.
    if ((round % 2)); then
      limit_product plain "$round" "$count"
      limit_copy plain "$round" "$count"
      limit_product keys "$round" "$count"
      limit_copy keys "$round" "$count"
    else
      limit_copy plain "$round" "$count"
      limit_product plain "$round" "$count"
      limit_copy keys "$round" "$count"
      limit_product keys "$round" "$count"
    fi
  done
  rm -f "$WORK"/rows-*
  stop "$LOGS_PID"
}

# limit_product plain|keys ROUND COUNT
limit_product() {
  local file="ledger-$1-$2.json" again="ledger-again-$2.json"
  fresh_bank ledger_run "$3" "$1"
  migrate "$file" ledger_run "$3" imported
  record_migration "ledger.$1" "$2" "$file"
  if [ "$1" = plain ]; then
    settle_postgres
    migrate "$again" ledger_run "$3" unchanged
    record_migration ledger.again "$2" "$again"
  fi
  drop_database ledger_run
}

# limit_copy plain|keys ROUND COUNT
limit_copy() {
  fresh_bank ledger_copy "$3" "$1"
  copy_rows "ledger.$1.copy_limit" "$2" ledger_copy "$3"
  drop_database ledger_copy
}
