#!/usr/bin/env bash
# Attacks by kernels, on this machine's GPU: none may be accepted, and the honest candidate after each must be.
#   scripts/gpu/attack.sh [NAME…]        all of attack/hack, or those of these names
# OUT is where the verdicts go as JSON lines; LIMIT bounds the seconds of each candidate, TOTAL those of all.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/gpu/setup.sh
attacks=scripts/gpu/attack
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# One after the other, an honest one behind each.
number=10
for attack in "$attacks"/hack/*.py; do
  [ $# -eq 0 ] || [[ " $* " == *" $(basename "$attack" .py) "* ]] || continue
  cp "$attack" "$work/$number-$(basename "$attack")"
  cp "$attacks/honest/plain.py" "$work/$number-then-honest.py"
  number=$((number + 1))
done
cp "$attacks/honest/prints.py" "$work/99-prints.py"
timeout "${TOTAL:-1200}" "$BINARY" verify "$attacks/problems/add_one.py" --batch "$work" --jobs 1 --target cuda:0 --untimed \
  --timeout "${LIMIT:-20}" --trials 2 >"$out/attack.jsonl"
"$TILEWRIGHT_PYTHON" scripts/gpu/attack_report.py "$attacks/labels.csv" "$out/attack.jsonl" "$@"
