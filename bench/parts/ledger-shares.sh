# Where the time goes: what the database spent on each kind of statement, as pg_stat_statements counts it, and the
# processor time of each process. Counting costs time, so no speed is taken from here.
# shellcheck shell=bash

prepare_ledger_shares() { "$ROOT/scripts/pg" install; }

bench_ledger_shares() {
  local round count="$LEDGER_RECORDS"
  start_tuned_postgres
  count_statements on
  export_logs "$count"
  for ((round = 1; round <= REPEAT; round++)); do shares_run "$round" "$count"; done
  stop "$LOGS_PID"
  count_statements off
}

# count_statements on|off: by statement, and what the log costs.
count_statements() {
  if [ "$1" = off ]; then
    query postgres 'DROP EXTENSION pg_stat_statements'
    query postgres 'ALTER SYSTEM RESET shared_preload_libraries'
    query postgres 'ALTER SYSTEM RESET track_wal_io_timing'
    restart_tuned_postgres
    return 0
  fi
  query postgres 'CREATE EXTENSION pg_stat_statements' ||
    die "pg_stat_statements is missing; it is in the package of Postgres' contributed modules"
  query postgres "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'"
  query postgres 'ALTER SYSTEM SET track_wal_io_timing = on'
  restart_tuned_postgres
}

# shares_run ROUND COUNT
shares_run() {
  local file="ledger-shares-$1.json" simulator server share value log
  fresh_bank ledger_run "$2"
  "$BIN" ledger init --database "$(address ledger_run)" 2>"$WORK/init.err"
  settle_postgres
  query postgres "SELECT pg_stat_statements_reset(), pg_stat_reset_shared('wal')" >/dev/null
  simulator="$(cpu_seconds "$LOGS_PID")"
  server="$(server_cpu_seconds)"
  migrate "$file" ledger_run "$2" imported
  query postgres "SELECT json_build_object('query', s.query, 'calls', s.calls, 'seconds', round((s.total_exec_time / 1000)::numeric, 4))
    FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = 'ledger_run'
    ORDER BY s.total_exec_time DESC" >"$OUT/ledger-shares-$1-statements.ndjson"
  log="$(query postgres 'SELECT round(((wal_write_time + wal_sync_time) / 1000)::numeric, 3) FROM pg_stat_wal')"
  record ledger.shares.cpu_crossdock "$1" "$(divide "$(field "$WORK/usage.json" cpu_seconds)" 1 3)" s
  record ledger.shares.cpu_simulator "$1" "$(minus "$(cpu_seconds "$LOGS_PID")" "$simulator")" s
  record ledger.shares.cpu_database "$1" "$(minus "$(server_cpu_seconds)" "$server")" s
  record ledger.shares.seconds "$1" "$(divide "$(field "$OUT/$file" seconds)" 1 3)" s
  record ledger.shares.fetch "$1" "$(query ledger_run 'SELECT round(sum(fetch_micros) / 1e6, 3) FROM crossdock.segments')" s
  record ledger.shares.process "$1" "$(query ledger_run 'SELECT round(sum(process_micros) / 1e6, 3) FROM crossdock.chunks')" s
  while read -r share value; do
    record "ledger.shares.database.$share" "$1" "$value" s
  done < <(python3 "$BENCH/tools/shares.py" "$OUT/ledger-shares-$1-statements.ndjson")
  record ledger.shares.database.log "$1" "$log" s
  drop_database ledger_run
}

cpu_seconds() { divide "$(awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$1/stat")" "$(getconf CLK_TCK)" 3; }

# Of the server with all its processes, those that ended too.
server_cpu_seconds() {
  local postmaster
  postmaster="$(head -n 1 "$WORK/pg-tuned/data/postmaster.pid")"
  divide "$({ awk '{ sub(/^.*\) /, ""); print $12 + $13 + $14 + $15 }' "/proc/$postmaster/stat"
    for child in $(cat "/proc/$postmaster/task/$postmaster/children"); do awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$child/stat" 2>/dev/null; done
  } | awk '{ sum += $1 } END { print sum }')" "$(getconf CLK_TCK)" 3
}
