# One process with one worker, and a second such process beside it. How much of the machine was idle says what limits: the
# simulator, the database and the processes share its cores.
# shellcheck shell=bash

prepare_ledger_workers() { "$ROOT/scripts/pg" install; }

bench_ledger_workers() {
  local round count="$LEDGER_RECORDS"
  start_tuned_postgres
  printf 'workers = 1\n' >"$WORK/one-worker.toml"
  export_logs "$count"
  for ((round = 1; round <= REPEAT; round++)); do
    if ((round % 2)); then
      workers_run one "$round" "$count"
      workers_run two "$round" "$count"
    else
      workers_run two "$round" "$count"
      workers_run one "$round" "$count"
    fi
  done
  stop "$LOGS_PID"
}

# workers_run one|two ROUND COUNT
workers_run() {
  local file="ledger-workers-$1-$2.json" before worker=
  fresh_bank ledger_run "$3"
  # So that the second process finds its schema.
  "$BIN" ledger init --database "$(address ledger_run)" 2>"$WORK/init.err"
  if [ "$1" = two ]; then
    start "worker-$2" "$BIN" worker --workers 1 --database "$(address ledger_run)"
    worker=$STARTED
    wait_for "$worker" "$WORK/worker-$2.err" 'working on the jobs' 60
  fi
  settle_postgres
  before="$(cpu_idle)"
  migrate "$file" ledger_run "$3" imported "$EXAMPLE" --config "$WORK/one-worker.toml"
  record "ledger.workers_$1.idle" "$2" "$(idle_between "$before" "$(cpu_idle)")" %
  record_migration "ledger.workers_$1" "$2" "$file"
  if [ -n "$worker" ]; then
    record ledger.workers_two.second_peak_memory "$2" \
      "$(awk '/^VmHWM/ { printf "%.1f", $2 * 1.024 / 1000 }' "/proc/$worker/status")" MB
    stop "$worker"
  fi
  drop_database ledger_run
}
