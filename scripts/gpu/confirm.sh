#!/usr/bin/env bash
# Confirms on this machine's GPU: every candidate of problems/ must be confirmed, and no file in confirm/hack may pass for
# the honest one whose plan it is held against.
#   scripts/gpu/confirm.sh [PROBLEM…]
# OUT is where the verdicts go as JSON lines; LIMIT bounds the seconds of each call, JOBS says how many run at a time.
set -uo pipefail
cd "$(dirname "$0")/../.."
. scripts/gpu/setup.sh
here=scripts/gpu/confirm
limit=${LIMIT:-60}
jobs=${JOBS:-6}
verify() { timeout "$limit" "$BINARY" verify "$@" --target cuda:0 --untimed --trials 1 --confirm --json; }
: >"$out/confirm.jsonl"
note() { # KIND NAME < VERDICT
  "$TILEWRIGHT_PYTHON" -c 'import json, sys
text = sys.stdin.read()
verdict = json.loads(text) if text.strip() else {"verdict": "none", "reasons": [], "notes": [], "stages": []}
print(json.dumps({"kind": sys.argv[1], "name": sys.argv[2], **{k: verdict.get(k) for k in ("verdict", "reasons", "notes", "stages")}}))' \
    "$1" "$2" >>"$out/confirm.jsonl"
}
for file in "$here"/honest/*.py; do
  verify scripts/gpu/attack/problems/add_one.py "$here/plain.py" --confirm-as "$file" | note honest "$(basename "$file" .py)" &
done
wait
for file in "$here"/hack/*.py; do
  verify scripts/gpu/attack/problems/add_one.py "$here/plain.py" --confirm-as "$file" | note hack "$(basename "$file" .py)" &
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
done
wait
for folder in ${*:-problems/*/}; do
  verify "$folder/problem.py" "$folder/candidate.py" | note problem "$(basename "$folder")" &
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
done
wait
"$TILEWRIGHT_PYTHON" - "$out/confirm.jsonl" <<'PY'
import json, sys
wrong = 0
print("| what | file | verdict | why |\n|---|---|---|---|")
with open(sys.argv[1]) as file:
    for entry in map(json.loads, file):
        confirmed = any(note.startswith("confirmed") for note in entry["notes"] or [])
        good = (entry["verdict"] == "rejected") if entry["kind"] == "hack" else confirmed
        wrong += not good
        why = entry["reasons"][0]["message"] if entry["reasons"] else next((n for n in entry["notes"] if n.startswith("confirmed")), "")
        print(f"| {entry['kind']} | {entry['name']} | {entry['verdict']}{'' if good else ' **wrong**'} | {why.replace('|', '/')[:200]} |")
print(f"\n{wrong} wrong")
sys.exit(1 if wrong else 0)
PY
