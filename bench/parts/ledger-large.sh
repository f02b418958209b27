# The same at ten times the size: whether it keeps its speed to the end as COPY does, and its memory.
# shellcheck shell=bash

prepare_ledger_large() { "$ROOT/scripts/pg" install; }

bench_ledger_large() {
  local round count="$LEDGER_LARGE" side
  start_tuned_postgres
  export_logs "$count"
  for ((round = 1; round <= REPEAT; round++)); do
    if [ "$round" = 1 ]; then
      # The limit's rows come from the first migration, so that one goes first.
      large_product plain "$round" "$count"
      ready_rows ledger_run "$count"
      cut_rows 3
      drop_database ledger_run
      large_copy plain "$round" "$count"
      large_product keys "$round" "$count"
      large_copy keys "$round" "$count"
    elif ((round % 2)); then
      for side in plain keys; do large_product "$side" "$round" "$count"; large_copy "$side" "$round" "$count"; done
    else
      for side in plain keys; do large_copy "$side" "$round" "$count"; large_product "$side" "$round" "$count"; done
    fi
  done
  rm -f "$WORK"/rows-*
  stop "$LOGS_PID"
}

# large_product plain|keys ROUND COUNT
large_product() {
  local file="ledger-large-$1-$2.json" thirds first last
  fresh_bank ledger_run "$3" "$1"
  migrate "$file" ledger_run "$3" imported
  record_migration "ledger.large.$1" "$2" "$file"
  query ledger_run "COPY (SELECT round(extract(epoch FROM c.settled_at - j.started_at), 3),
      sum(c.records) OVER (ORDER BY c.settled_at, c.segment, c.first_ordinal)
    FROM crossdock.chunks c JOIN crossdock.jobs j ON j.id = c.job_id ORDER BY 1) TO STDOUT" >"$OUT/ledger-large-$1-$2-settled.tsv"
  cp "$WORK/memory.tsv" "$OUT/ledger-large-$1-$2-memory.tsv"
  thirds="$(awk -v n="$3" '{ if (!a && $2 >= n / 3) a = $1; if (!b && $2 >= 2 * n / 3) b = $1; c = $1 }
    END { print a, b, c }' "$OUT/ledger-large-$1-$2-settled.tsv")"
  read -r first last <<<"$(echo "$thirds" | awk -v n="$3" '{ printf "%.1f %.1f", n / 3 / $1, n / 3 / ($3 - $2) }')"
  record "ledger.large.$1.first_third" "$2" "$first" records/s
  record "ledger.large.$1.last_third" "$2" "$last" records/s
  record "ledger.large.$1.last_to_first_third" "$2" "$(divide "$last" "$first" 4)" ratio
  # Of the highest in each half, so that a short peak at the start is no growth.
  record "ledger.large.$1.memory_growth" "$2" "$(awk -F '\t' '{ at[NR] = $1; mb[NR] = $2 }
    END { for (i = 1; i <= NR; i++) if (at[i] < at[NR] / 2) { if (mb[i] > a) a = mb[i] } else if (mb[i] > b) b = mb[i];
      printf "%.4f", (a > 0) ? b / a : 1 }' "$WORK/memory.tsv")" ratio
  if [ "$2/$1" != 1/plain ]; then drop_database ledger_run; fi
}

# large_copy plain|keys ROUND COUNT
large_copy() {
  local first last
  fresh_bank ledger_copy "$3" "$1"
  copy_rows "ledger.large.$1.copy_limit" "$2" ledger_copy "$3"
  drop_database ledger_copy
  cp "$WORK/copied-a" "$OUT/ledger-large-$1-$2-copied-a.txt"
  cp "$WORK/copied-b" "$OUT/ledger-large-$1-$2-copied-b.txt"
  # The mean of both sessions.
  read -r first last <<<"$(paste "$WORK/copied-a" "$WORK/copied-b" | awk -v n="$3" '{ at[NR] = ($1 + $2) / 2 }
    END { printf "%.1f %.1f", n / 3 / (at[2] - at[1]), n / 3 / (at[4] - at[3]) }')"
  record "ledger.large.$1.copy_first_third" "$2" "$first" records/s
  record "ledger.large.$1.copy_last_third" "$2" "$last" records/s
  record "ledger.large.$1.copy_last_to_first_third" "$2" "$(divide "$last" "$first" 4)" ratio
}
