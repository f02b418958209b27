# The demo from a built binary to its summary, as `make demo` runs it.
# shellcheck shell=bash

prepare_demo() { :; }

bench_demo() {
  local round begin end file
  for ((round = 1; round <= REPEAT; round++)); do
    file="$OUT/demo-$round.json"
    settle_files
    begin="$(now)"
    bounded 300 env -C "$WORK" "$BIN" demo --count "$DEMO_LINKS" --exit --json >"$file" 2>"$WORK/demo.err" ||
      { tail -n 20 "$WORK/demo.err" >&2; die "the demo did not end well"; }
    end="$(now)"
    [ "$(field "$file" mismatched)" = 0 ] || die "the demo found slugs that answer wrongly"
    record demo.seconds "$round" "$(awk -v s="$(minus "$end" "$begin")" 'BEGIN { printf "%.2f", s }')" s
  done
}
