#!/usr/bin/env bash
# Confirms on this machine's GPU: every candidate of problems/ must be confirmed, and no file in confirm/hack may pass for
# the honest one whose plan it is held against.
#   scripts/gpu/confirm.sh [PROBLEM…]
# OUT is where the verdicts go as JSON lines; LIMIT bounds the seconds of each call with a file of confirm/, TOTAL those of
# all problems; JOBS says how many calls run at a time.
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
# All of these by one service: a process for each would spend most of its time on starting.
problems=(${*:-problems/*/})
for folder in "${problems[@]%/}"; do
  printf '{"id": "%s", "problem": "%s/problem.py", "candidate": "%s/candidate.py"}\n' "${folder##*/}" "$folder" "$folder"
done | timeout "${TOTAL:-600}" "$BINARY" verify --batch - --target cuda:0 --untimed --trials 1 --confirm >"$out/confirm-problems.jsonl"
"$TILEWRIGHT_PYTHON" - "$out/confirm.jsonl" "$out/confirm-problems.jsonl" "${#problems[@]}" <<'PY'
import json, sys
entries = [json.loads(line) for line in open(sys.argv[1])]
answers = [json.loads(line) for line in open(sys.argv[2])]
for answer in answers:
    none = {"verdict": "none", "reasons": [{"message": answer.get("error") or ""}], "notes": []}
    entries.append({"kind": "problem", "name": answer["id"], **(answer.get("verdict") or none)})
wrong = int(sys.argv[3]) - len(answers)
print(f"{wrong} problems without an answer\n" if wrong else "", end="")
print("| what | file | verdict | why |\n|---|---|---|---|")
for entry in entries:
    confirmed = next((note for note in entry["notes"] or [] if note.startswith("confirmed")), "")
    good = (entry["verdict"] == "rejected") if entry["kind"] == "hack" else confirmed
    wrong += not good
    why = entry["reasons"][0]["message"] if entry["reasons"] else confirmed
    print(f"| {entry['kind']} | {entry['name']} | {entry['verdict']}{'' if good else ' **wrong**'} | {why.replace('|', '/')[:200]} |")
print(f"\n{wrong} wrong")
sys.exit(1 if wrong else 0)
PY
