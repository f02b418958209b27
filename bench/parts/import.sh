# The speed of an import, beside how fast the same pages can be fetched and the same rows be written at all.
# shellcheck shell=bash

prepare_import() { "$ROOT/scripts/pg" install; }

bench_import() {
  local round
  start_postgres
  simulate "$IMPORT_LINKS"
  walk 0 >/dev/null
  for ((round = 1; round <= REPEAT; round++)); do
    walk "$round"
    import_sqlite "$round"
    write_sqlite "$round"
    import_postgres "$round"
    write_postgres "$round"
  done
  stop "$BITLY_PID"
}

# The same requests one after another with nothing behind them. Round 0 warms the simulator up and is not recorded.
walk() {
  local file="$OUT/walk-$1.json"
  bounded 600 python3 "$BENCH/tools/walk.py" bitly --url "$BITLY_URL/groups/$BITLY_GROUP/bitlinks" \
    --token-file "$WORK/bitly-$IMPORT_LINKS.out" --expect "$IMPORT_LINKS" >"$file"
  if [ "$1" = 0 ]; then rm "$file"; return 0; fi
  record import.fetch_limit "$1" "$(field "$file" records_per_second)" links/s
}

import_sqlite() {
  local database="$WORK/import.db"
  rm -f "$database"*
  settle_files
  import "import-sqlite-$1.json" "sqlite://$database" "$IMPORT_LINKS"
  record_import sqlite "$1"
}

# The rows that the import has just written, by the shortest loop there is: a fresh file of the same schema.
write_sqlite() {
  local database="$WORK/limit.db" file="$OUT/write-sqlite-$1.json"
  rm -f "$database"*
  "$BIN" --database "sqlite://$database" domain list --json >/dev/null 2>"$WORK/limit.err"
  settle_files
  bounded 600 python3 "$BENCH/tools/write_sqlite.py" "$WORK/import.db" "$database" >"$file"
  record import.sqlite.write_limit "$1" "$(field "$file" links_per_second)" links/s
}

import_postgres() {
  fresh_database bench_import
  settle_postgres
  import "import-postgres-$1.json" "$(address bench_import)" "$IMPORT_LINKS"
  record_import postgres "$1"
}

# The same with COPY, all rows in one transaction, into a fresh database of the same schema and indexes.
write_postgres() {
  local table begin end columns
  fresh_database bench_limit
  "$BIN" --database "$(address bench_limit)" domain list --json >/dev/null 2>"$WORK/limit.err"
  : >"$WORK/copy.sql"
  printf '%s\n' '\set ON_ERROR_STOP on' 'BEGIN;' >>"$WORK/copy.sql"
  for table in links slugs link_tags link_origins; do
    columns=1
    if [ "$table" = link_origins ]; then columns=link_id; fi
    query bench_import "COPY (SELECT * FROM $table ORDER BY $columns) TO STDOUT" >"$WORK/$table.copy"
    printf '%s\n' "\\copy $table from '$WORK/$table.copy'" >>"$WORK/copy.sql"
  done
  printf 'COMMIT;\n' >>"$WORK/copy.sql"
  settle_postgres
  begin="$(now)"
  bounded 600 "$PSQL" -qX -d "$(address bench_limit)" -f "$WORK/copy.sql" >/dev/null
  end="$(now)"
  [ "$(query bench_limit 'SELECT count(*) FROM links')" = "$IMPORT_LINKS" ] || die "the bare COPY wrote other rows"
  record import.postgres.write_limit "$1" "$(divide "$IMPORT_LINKS" "$(minus "$end" "$begin")")" links/s
}

# record_import DATABASE ROUND
record_import() {
  local file="$OUT/import-$1-$2.json"
  record "import.$1.speed" "$2" "$(divide "$(field "$file" source_links)" "$(field "$file" seconds)")" links/s
  record "import.$1.seconds" "$2" "$(divide "$(field "$file" seconds)" 1 3)" s
  record "import.$1.process_seconds" "$2" "$(divide "$WALL" 1 3)" s
  record "import.$1.peak_memory" "$2" "$(divide "$(field "$file" peak_rss_bytes)" 1000000)" MB
}
