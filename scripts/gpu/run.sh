#!/usr/bin/env bash
# Everything that only a machine with a GPU can show: builds the binary there, or takes the one in .gpu/, runs the parts one
# after the other and prints one table.
#   scripts/gpu/run.sh [PART…]
# Parts, all of them by default: doctor problems paths corpus attack confirm faults copies clock throughput latency
# OUT is where logs, verdicts (JSON lines) and figures go; the table is OUT/summary.md. Exit status 1 where a part fails.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/gpu/setup.sh
mkdir -p "$out"
export BINARY OUT="$out"
here=scripts/gpu

run_doctor() { "$BINARY" doctor; }
# Every problem of the suite with its candidate.
run_problems() { python3 scripts/verdict_table.py --binary "$BINARY" --target cuda:0 --jobs 4 --json "$out/problems.jsonl" problems; }
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

parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(doctor problems paths corpus attack confirm faults copies clock throughput latency)
for part in "${parts[@]}"; do
  if ! declare -F "run_$part" >/dev/null; then
    echo "scripts/gpu/run.sh: no part $part: see its head for the list" >&2
    exit 2
  fi
done

status=0
printf '| part | exit status | seconds | last line |\n|---|---|---|---|\n' >"$out/summary.md"
for part in "${parts[@]}"; do
  echo "== $part"
  start=$SECONDS
  "run_$part" 2>&1 | tee "$out/$part.log"
  code=${PIPESTATUS[0]}
  [ "$code" -eq 0 ] || status=1
  last=$(grep -v '^[[:space:]]*$' "$out/$part.log" | tail -1 | cut -c1-120 | tr '|' '/')
  printf '| %s | %s | %s | %s |\n' "$part" "$code" "$((SECONDS - start))" "$last" >>"$out/summary.md"
done
echo
cat "$out/summary.md"
exit $status
