#!/usr/bin/env bash
# Everything that only a machine with a GPU can show: builds the binary there, or takes the one in .gpu/, runs the parts and
# prints one table.
#   scripts/gpu/run.sh [PART…]
# Parts, all of them by default: doctor problems paths corpus attack confirm faults copies clock throughput latency
# Those that look at verdicts alone run beside each other; then, one after the other, those that measure or make faults.
# OUT is where logs, verdicts (JSON lines) and figures go; the table is OUT/summary.md. Exit status 1 where a part fails.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/gpu/setup.sh
mkdir -p "$out"
export BINARY OUT="$out"
here=scripts/gpu

run_doctor() { "$BINARY" doctor; }
# Every problem of the suite with its candidate.
run_problems() { python3 scripts/verdict_table.py --binary "$BINARY" --target cuda:0 --jobs 8 --json "$out/problems.jsonl" problems; }
# The same and wrong candidates of the corpus with data on the GPU and through the host.
run_paths() { python3 $here/coverage.py "$BINARY" --paths --wrong 8 --out "$out/paths.jsonl"; }
# The labelled corpus; a run that was stopped goes on.
run_corpus() { "$BINARY" audit corpus --target cuda:0 --resume "$out/audit.jsonl" --html "$out/audit.html"; }
run_attack() { $here/attack.sh; }
run_confirm() { $here/confirm.sh; }
run_faults() { python3 $here/faults.py "$BINARY" --json "$out/faults.json"; }
run_copies() { python3 $here/copies.py "$BINARY" --json "$out/copies.json"; }
run_clock() { python3 $here/clock.py "$BINARY" --sizes --out "$out"; }
run_throughput() { python3 $here/throughput.py "$BINARY" --plain 20 --out "$out/throughput.json"; }
run_latency() { python3 $here/latency.py "$BINARY" --out "$out/latency.json"; }

verdicts=(problems paths corpus attack confirm)
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(doctor "${verdicts[@]}" faults copies clock throughput latency)
for part in "${parts[@]}"; do
  if ! declare -F "run_$part" >/dev/null; then
    echo "scripts/gpu/run.sh: no part $part: see its head for the list" >&2
    exit 2
  fi
done

# A part with its log and its line of the table.
part() {
  local start=$SECONDS code last
  "run_$1" 2>&1 | tee "$out/$1.log" | sed -u "s/^/$1: /"
  code=${PIPESTATUS[0]}
  last=$(grep -v '^[[:space:]]*$' "$out/$1.log" | tail -1 | cut -c1-120 | tr '|' '/')
  printf '| %s | %s | %s | %s |\n' "$1" "$code" "$((SECONDS - start))" "$last" >>"$out/summary.md"
}

printf '| part | exit status | seconds | last line |\n|---|---|---|---|\n' >"$out/summary.md"
for name in "${parts[@]}"; do
  [[ " ${verdicts[*]} " == *" $name "* ]] && part "$name" &
done
wait
for name in "${parts[@]}"; do
  [[ " ${verdicts[*]} " == *" $name "* ]] || part "$name"
done
echo
cat "$out/summary.md"
awk -F '|' 'NR > 2 && $3 != 0 { failed = 1 } END { exit failed }' "$out/summary.md"
