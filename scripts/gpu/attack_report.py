"""Checks the verdicts of `scripts/gpu/attack.sh` against the labels and prints them as a Markdown table.

python3 scripts/gpu/attack_report.py LABELS.csv VERDICTS.jsonl [NAME…]        the names of those that were run
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path


def main() -> int:
    """0 when each attack got a verdict of its label and each honest candidate was accepted."""
    labels, verdicts, *names = sys.argv[1:]
    with open(labels, newline="") as file:
        wanted = {row["id"]: row["verdict"].split("|") for row in csv.DictReader(file)}
    failures = 0
    seen = set()
    print("| candidate | verdict | wanted | why |\n|---|---|---|---|")
    with open(verdicts) as file:
        for line in file:
            verdict = json.loads(line)
            name = Path(verdict["candidate"]["path"]).stem
            identity = name.split("-", 1)[1]
            seen.add(identity)
            want = ["accepted"] if identity == "then-honest" else wanted[identity]
            good = verdict["verdict"] in want
            failures += not good
            why = verdict["reasons"][0]["message"].replace("|", "/")[:100] if verdict["reasons"] else ""
            print(f"| {name} | {verdict['verdict']}{'' if good else ' **wrong**'} | {' or '.join(want)} | {why} |")
    missing = {*(names or (name for name in wanted if name != "plain"))} - seen
    print(f"\n{failures} wrong, {len(missing)} without a verdict: {', '.join(sorted(missing)) or '-'}")
    return 1 if failures or missing else 0


if __name__ == "__main__":
    sys.exit(main())
