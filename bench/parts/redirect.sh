# Redirects: the server on one core, wrk on another; the bare peer and Crossdock take turns within a repetition.
# shellcheck shell=bash

prepare_redirect() {
  local cores
  need wrk wrk
  need taskset util-linux
  need curl curl
  cores="$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2])')"
  read -r SERVER_CORE WRK_CORE <<<"$cores"
  [ -n "${WRK_CORE:-}" ] || die "redirects need two cores, one for the server and one for wrk"
  build_peer
}

bench_redirect() {
  local round
  serve_peer
  serve_links few "$REDIRECT_LINKS"
  if [ "$FULL" = 1 ]; then serve_links many "$REDIRECT_MANY"; fi
  for ((round = 1; round <= REPEAT; round++)); do
    ask peer hot "$round" "$PEER_URL" "$PEER_PID"
    ask few hot "$round" "$FEW_URL" "$FEW_PID"
    if [ "$FULL" = 1 ]; then ask many hot "$round" "$MANY_URL" "$MANY_PID"; fi
  done
  for ((round = 1; round <= REPEAT; round++)); do
    ask few unknown "$round" "$FEW_URL" "$FEW_PID"
    if [ "$FULL" = 1 ]; then
      ask many uniform "$round" "$MANY_URL" "$MANY_PID"
      ask many unknown "$round" "$MANY_URL" "$MANY_PID"
    fi
  done
  stop "$PEER_PID"
  stop_and_count few "$FEW_URL" "$FEW_PID"
  if [ "$FULL" = 1 ]; then stop_and_count many "$MANY_URL" "$MANY_PID"; fi
}

build_peer() {
  if [ -n "${BENCH_PEER_BIN:-}" ]; then
    PEER_BIN="$(realpath -e "$BENCH_PEER_BIN")" || die "there is no binary at BENCH_PEER_BIN=$BENCH_PEER_BIN"
    return 0
  fi
  CARGO_TARGET_DIR="$TARGET" cargo build --release --locked --manifest-path "$BENCH/redirect-peer/Cargo.toml"
  PEER_BIN="$TARGET/release/redirect-peer"
}

listening_on() { sed -n 's|.*serving on \(http://[0-9.:]*\).*|\1|p' "$1" | tail -n 1; }

serve_peer() {
  start peer taskset -c "$SERVER_CORE" "$PEER_BIN" "$REDIRECT_LINKS"
  PEER_PID=$STARTED
  wait_for "$PEER_PID" "$WORK/peer.err" 'serving on' 60
  PEER_URL="$(listening_on "$WORK/peer.err")"
  check_answer "$PEER_URL"
}

# serve_links few|many COUNT: a database with so many links, and `crossdock serve` over it as anybody would start it.
serve_links() {
  local database="$WORK/$1.db" url pid
  say "preparing a database of $2 links"
  "$BIN" --database "sqlite://$database" domain add 127.0.0.1 >/dev/null 2>"$WORK/domain.err"
  bounded 1800 python3 "$BENCH/tools/seed_links.py" "$database" 127.0.0.1 "$2"
  start "$1" taskset -c "$SERVER_CORE" "$BIN" --database "sqlite://$database" serve --listen 127.0.0.1:0 \
    --public-url http://localhost
  pid=$STARTED
  wait_for "$pid" "$WORK/$1.err" 'serving on' 60
  url="$(listening_on "$WORK/$1.err")"
  check_answer "$url"
  warm_up "$1" "$url"
  case "$1" in few) FEW_URL="$url" FEW_PID="$pid" ;; many) MANY_URL="$url" MANY_PID="$pid" ;; esac
}

# warm_up few|many URL: asks for every slug once before the measurement, which is of the steady state. It is bounded:
# what a slow machine has not asked for by then is read from the database during the measurement.
warm_up() {
  local file="$OUT/wrk-$1-warm.txt" asked=0 try
  : >"$file"
  for ((try = 0; try < 6 && asked < REDIRECT_LINKS; try++)); do
    SLUGS="$REDIRECT_LINKS" ORDER=sequence SKIP="$asked" wrk_once "$2" slugs "$WARM_SECONDS" >>"$file"
    asked="$(awk '/^RESULT/ { sum += $2 } END { print sum + 0 }' "$file")"
  done
}

# A fast wrong answer is no figure.
check_answer() {
  local number answer
  for number in 0 1 $((REDIRECT_LINKS - 1)); do
    answer="$(curl -s -o /dev/null -w '%{http_code} %{redirect_url}' "$1/$(printf 's%06d' "$number")")"
    [ "$answer" = "302 https://example.com/landing/$number?utm=x" ] ||
      die "slug $number at $1 is answered with '$answer'"
  done
  answer="$(curl -s -o /dev/null -w '%{http_code}' "$1/x00000001")"
  [ "$answer" = 404 ] || die "an unknown slug at $1 is answered with '$answer'"
}

# wrk_once URL SCRIPT SECONDS: one thread, 64 connections kept open; prints the script's line.
wrk_once() {
  BENCH_LUA="$BENCH/wrk" bounded $(($3 + 60)) taskset -c "$WRK_CORE" wrk -t1 -c64 "-d${3}s" --timeout 10s -s "$BENCH/wrk/$2.lua" "$1"
}

# CPU time of a process so far, in microseconds.
cpu_of() { awk -v tick="$(getconf CLK_TCK)" '{ sub(/^.*\) /, ""); print ($12 + $13) * 1000000 / tick }' "/proc/$1/stat"; }

# ask SERVER KIND ROUND URL PID: one measurement, with the same slugs in the same order for every server of a round.
ask() {
  local script=slugs slugs="$REDIRECT_LINKS" raw="$OUT/wrk-$1-$2-$3.txt" before after
  local requests rate p50 p95 p99 refused broken
  case "$2" in
    uniform) script=uniform slugs="$REDIRECT_MANY" ;;
    unknown) script=unknown ;;
  esac
  before="$(cpu_of "$5")"
  SLUGS="$slugs" ORDER=random SEED="$3" wrk_once "$4" "$script" "$WRK_SECONDS" >"$raw"
  after="$(cpu_of "$5")"
  read -r _ requests rate p50 p95 p99 refused broken < <(grep '^RESULT' "$raw")
  check_errors "$2" "$requests" "$refused" "$broken"
  record "redirect.$1.$2.speed" "$3" "$rate" requests/s
  record "redirect.$1.$2.p50" "$3" "$p50" ms
  record "redirect.$1.$2.p95" "$3" "$p95" ms
  record "redirect.$1.$2.p99" "$3" "$p99" ms
  record "redirect.$1.$2.cpu" "$3" "$(divide "$(minus "$after" "$before")" "$requests")" us/request
  record "redirect.$1.$2.memory" "$3" "$(awk '/^VmRSS/ { printf "%.0f", $2 * 1.024 / 1000 }' "/proc/$5/status")" MB
}

# wrk counts answers above 399; all of a flood's must be, none of the others'.
check_errors() {
  [ "$4" = 0 ] || die "$4 connections broke during the measurement"
  if [ "$1" = unknown ]; then
    [ "$3" = "$2" ] || die "$(($2 - $3)) unknown slugs were found"
  else
    [ "$3" = 0 ] || die "$3 of $2 requests were refused"
  fi
}

# stop_and_count few|many URL PID: counting is part of what was measured, so it is shown that it happened.
stop_and_count() {
  local answered
  # The buffer holds at most one second of clicks.
  sleep 2
  curl -sf -H 'Host: localhost' "$2/metrics" >"$OUT/metrics-$1.txt" || die "no metrics at $2"
  stop "$3"
  answered="$({ cat "$OUT"/wrk-"$1"-{warm,hot,uniform}*.txt 2>/dev/null || true; } | awk '/^RESULT/ { sum += $2 } END { print sum + 0 }')"
  record "redirect.$1.answered" 1 "$answered" requests
  record "redirect.$1.clicks_written" 1 "$(metric clicks_written "$1")" clicks
  record "redirect.$1.clicks_dropped" 1 "$(metric clicks_dropped "$1")" clicks
}

# metric NAME few|many
metric() {
  awk -v name="crossdock_$1" '{ metric = $1; sub(/_total/, "", metric); sub(/\{.*/, "", metric) }
    metric == name { sum += $2 } END { printf "%d", sum }' "$OUT/metrics-$2.txt"
}
