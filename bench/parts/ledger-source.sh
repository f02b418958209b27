# Where the source is slow: beside fetching alone with 20 ms for each page, and eight partitions beside one with 200 ms.
# shellcheck shell=bash

prepare_ledger_source() { "$ROOT/scripts/pg" install; }

bench_ledger_source() {
  local round
  start_tuned_postgres
  for ((round = 1; round <= REPEAT; round++)); do
    source_slow "$round" "$LEDGER_RECORDS"
    source_partitions "$round" "$LEDGER_PARTITIONED"
  done
}

# source_slow ROUND COUNT
source_slow() {
  export_logs "$2" --latency-ms 20
  walk_logs ledger.slow.fetch_limit "$1" "$2"
  fresh_bank ledger_run "$2"
  migrate "ledger-slow-$1.json" ledger_run "$2" imported
  record_migration ledger.slow "$1" "ledger-slow-$1.json"
  drop_database ledger_run
  stop "$LOGS_PID"
}

# source_partitions ROUND COUNT
source_partitions() {
  export_logs "$2" --latency-ms 200 --partitions 8
  rm -rf "$WORK/partitioned"
  cp -r "$EXAMPLE" "$WORK/partitioned"
  printf '\n[source.partitions]\nparam = "shard"\nvalues = ["0", "1", "2", "3", "4", "5", "6", "7"]\nside_by_side = 8\n' \
    >>"$WORK/partitioned/pipeline.toml"
  fresh_bank ledger_run "$2"
  migrate "ledger-one-$1.json" ledger_run "$2" imported
  record_migration ledger.one_partition "$1" "ledger-one-$1.json"
  fresh_bank ledger_run "$2"
  migrate "ledger-eight-$1.json" ledger_run "$2" imported "$WORK/partitioned"
  record_migration ledger.eight_partitions "$1" "ledger-eight-$1.json"
  drop_database ledger_run
  stop "$LOGS_PID"
}
