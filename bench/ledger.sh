# What the ledger's parts share: the simulated export, a bank per measurement, one migration, one bare COPY. Sourced by
# run.sh.
# shellcheck shell=bash

EXAMPLE="$ROOT/pipelines/wallet-logs"
COLUMNS='reference, source_id, account_id, customer_id, type, amount, balance_before, balance_after, currency, status, metadata, created_at'

# export_logs COUNT [FLAG…]: the simulated export in a process of its own. Sets LOGS_URL, LOGS_TOKEN, LOGS_PID, LOGS_OUT.
export_logs() {
  local name="logs-$1-$RANDOM" count="$1"
  shift
  start "$name" "$BIN" simulate wallet-logs --count "$count" --seed 1 "$@"
  LOGS_PID=$STARTED
  LOGS_OUT="$WORK/$name.out"
  wait_for "$LOGS_PID" "$LOGS_OUT" '"url"' 60
  LOGS_URL="$(field "$LOGS_OUT" url)"
  LOGS_TOKEN="$(field "$LOGS_OUT" token)"
}

# walk_logs FIGURE ROUND COUNT: the same pages one after another with nothing behind them.
walk_logs() {
  local file="$WORK/walk.json"
  bounded 900 python3 "$BENCH/tools/walk.py" wallet-logs --url "$LOGS_URL/wallet-logs" --token-file "$LOGS_OUT" \
    --expect "$3" >"$file"
  cp "$file" "$OUT/${1//./-}-$2.json"
  record "$1" "$2" "$(field "$file" records_per_second)" records/s
}

# bank_of COUNT: makes the template that every bank of so many records is a copy of. Its name is in BANK.
bank_of() {
  BANK="bank_$1"
  [ -z "$(query postgres "SELECT 1 FROM pg_database WHERE datname = '$BANK'")" ] || return 0
  query postgres "CREATE DATABASE $BANK"
  timeout 600 "$PSQL" -qX -v ON_ERROR_STOP=1 -d "$(address "$BANK")" -f "$EXAMPLE/schema.sql" >/dev/null
  "$BIN" simulate wallet-logs --count "$1" --seed 1 --print-accounts 2>"$WORK/accounts.err" |
    timeout 600 "$PSQL" -qX -v ON_ERROR_STOP=1 -d "$(address "$BANK")" >/dev/null
  query "$BANK" 'VACUUM ANALYZE'
}

# fresh_bank DATABASE COUNT [keys]: an empty table of transactions, with foreign keys if asked for; nothing is left for
# the next measurement to write.
fresh_bank() {
  bank_of "$2"
  PGOPTIONS="-c client_min_messages=warning" query postgres "DROP DATABASE IF EXISTS $1 WITH (FORCE)"
  query postgres "CREATE DATABASE $1 TEMPLATE $BANK"
  if [ "${3:-}" = keys ]; then
    timeout 600 "$PSQL" -qX -v ON_ERROR_STOP=1 -d "$(address "$1")" -f "$EXAMPLE/foreign_keys.sql" >/dev/null
  fi
  settle_postgres
}

drop_database() { query postgres "DROP DATABASE $1 WITH (FORCE)"; }

# migrate FILE DATABASE COUNT OUTCOME [FOLDER [FLAG…]]: one migration. Its last object goes to the run's folder; one that
# does not end clean, with all records in that outcome and a certificate that holds, ends the run. Memory over time is in
# $WORK/memory.tsv.
migrate() {
  local file="$OUT/$1" database="$2" count="$3" outcome="$4" folder="${5:-$EXAMPLE}"
  shift $(($# < 5 ? $# : 5))
  CORE_TOKEN="$LOGS_TOKEN" bounded 3600 python3 "$BENCH/tools/sampled.py" --memory "$WORK/memory.tsv" \
    --usage "$WORK/usage.json" -- "$BIN" ledger run "$folder" --set "CORE_URL=$LOGS_URL" \
    --database "$(address "$database")" "$@" --json >"$file" 2>"$WORK/migrate.err" ||
    { tail -n 20 "$WORK/migrate.err" >&2; tail -c 2000 "$file" >&2; die "the migration failed"; }
  [ "$(field "$file" "$outcome")" = "$count" ] && [ "$(field "$file" outcome)" = clean ] ||
    die "the migration ended $(field "$file" outcome) with $(field "$file" "$outcome") of $count records $outcome"
  python3 -c '
import json, sys
sys.exit(not json.loads(open(sys.argv[1]).read().splitlines()[-1])["certificate"]["holds"])' "$file" ||
    die "the certificate does not hold"
}

# record_migration FIGURE ROUND FILE: speed from the start of the job to its last settled chunk; beside it the whole job
# with its certificate.
record_migration() {
  local file="$OUT/$3" records
  records="$(field "$file" records)"
  record "$1.speed" "$2" "$(divide "$records" "$(field "$file" seconds)")" records/s
  record "$1.speed_with_certificate" "$2" "$(divide "$records" "$(field "$file" total_seconds)")" records/s
  record "$1.seconds" "$2" "$(divide "$(field "$file" seconds)" 1 3)" s
  record "$1.certificate_seconds" "$2" "$(minus "$(field "$file" total_seconds)" "$(field "$file" seconds)")" s
  record "$1.peak_memory" "$2" "$(divide "$(field "$file" peak_rss_bytes)" 1000000)" MB
  record "$1.cpu" "$2" "$(divide "$(field "$WORK/usage.json" cpu_seconds)" "$records" 9 |
    awk '{ printf "%.2f", $1 * 1000000 }')" us/record
}

# ready_rows DATABASE COUNT: the rows that a migration left, as COPY text, a file for each of two sessions.
ready_rows() {
  local half=$((($2 + 1) / 2))
  rm -f "$WORK"/rows-*
  timeout 1800 "$PSQL" -qX -v ON_ERROR_STOP=1 -d "$(address "$1")" \
    -c "\\copy (SELECT $COLUMNS FROM bank.transactions ORDER BY id) TO STDOUT" |
    split -l "$half" -a 1 - "$WORK/rows-"
  [ -f "$WORK/rows-a" ] && [ -f "$WORK/rows-b" ] && [ ! -f "$WORK/rows-c" ] || die "the rows could not be split in two"
}

# cut_rows PIECES: each session's file in so many pieces, and a script that copies them one after another and tells when.
cut_rows() {
  local session lines piece
  for session in a b; do
    lines="$(wc -l <"$WORK/rows-$session")"
    rm -f "$WORK/rows-$session"-*
    split -l $(((lines + $1 - 1) / $1)) -a 1 "$WORK/rows-$session" "$WORK/rows-$session-"
    {
      printf '%s\n' '\set ON_ERROR_STOP on' 'SELECT extract(epoch FROM clock_timestamp());'
      for piece in "$WORK/rows-$session"-*; do
        printf "\\\\copy bank.transactions (%s) FROM '%s'\n" "$COLUMNS" "$piece"
        printf '%s\n' 'SELECT extract(epoch FROM clock_timestamp());'
      done
    } >"$WORK/copy-$session.sql"
  done
}

# copy_rows FIGURE ROUND DATABASE COUNT: the limit. Two sessions copy the ready rows into an empty table at once; when each
# piece was in is in $WORK/copied-{a,b}.
copy_rows() {
  local begin end first second
  begin="$(now)"
  timeout 3600 "$PSQL" -qXAt -d "$(address "$3")" -f "$WORK/copy-a.sql" >"$WORK/copied-a" &
  first=$!
  timeout 3600 "$PSQL" -qXAt -d "$(address "$3")" -f "$WORK/copy-b.sql" >"$WORK/copied-b" &
  second=$!
  wait "$first" || die "the first COPY failed"
  wait "$second" || die "the second COPY failed"
  end="$(now)"
  [ "$(query "$3" 'SELECT count(*) FROM bank.transactions')" = "$4" ] || die "the bare COPY wrote other rows"
  record "$1" "$2" "$(divide "$4" "$(minus "$end" "$begin")")" records/s
}

# Per cent of the machine's time that nobody used between two readings of `cpu_idle`.
cpu_idle() { awk '/^cpu / { all = 0; for (i = 2; i <= 9; i++) all += $i; print $5 + $6, all }' /proc/stat; }
idle_between() { echo "$1 $2" | awk '{ printf "%.1f", ($4 > $2) ? 100 * ($3 - $1) / ($4 - $2) : 0 }'; }
