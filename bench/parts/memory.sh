# Whether ten times the links cost more memory or go slower: both sizes alternate, on SQLite, with --full on Postgres too.
# shellcheck shell=bash

prepare_memory() { if [ "$FULL" = 1 ]; then "$ROOT/scripts/pg" install; fi; }

bench_memory() {
  local round size pid
  declare -A accounts=()
  simulate "$MEMORY_SMALL"
  accounts[small]="$BITLY_PID $BITLY_URL $BITLY_TOKEN"
  simulate "$MEMORY_LARGE"
  accounts[large]="$BITLY_PID $BITLY_URL $BITLY_TOKEN"
  if [ "$FULL" = 1 ]; then start_postgres; fi
  for ((round = 1; round <= REPEAT; round++)); do
    for size in small large; do
      read -r _ BITLY_URL BITLY_TOKEN <<<"${accounts[$size]}"
      memory_sqlite "$size" "$round"
      if [ "$FULL" = 1 ]; then memory_postgres "$size" "$round"; fi
    done
  done
  for size in small large; do
    read -r pid _ <<<"${accounts[$size]}"
    stop "$pid"
  done
}

links_of() { if [ "$1" = small ]; then echo "$MEMORY_SMALL"; else echo "$MEMORY_LARGE"; fi; }

memory_sqlite() {
  rm -f "$WORK/memory.db"*
  settle_files
  import "memory-sqlite-$1-$2.json" "sqlite://$WORK/memory.db" "$(links_of "$1")"
  record_memory sqlite "$1" "$2"
  rm -f "$WORK/memory.db"*
}

memory_postgres() {
  fresh_database bench_memory
  settle_postgres
  import "memory-postgres-$1-$2.json" "$(address bench_memory)" "$(links_of "$1")"
  record_memory postgres "$1" "$2"
}

# record_memory DATABASE SIZE ROUND
record_memory() {
  local file="$OUT/memory-$1-$2-$3.json"
  record "memory.$1.$2.peak_memory" "$3" "$(divide "$(field "$file" peak_rss_bytes)" 1000000)" MB
  record "memory.$1.$2.speed" "$3" "$(divide "$(field "$file" source_links)" "$(field "$file" seconds)")" links/s
}
