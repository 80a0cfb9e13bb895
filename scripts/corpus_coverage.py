#!/usr/bin/env python3
"""Print which corpus files show which mechanism of the catalogue, as a Markdown table, and check labels.csv.

    scripts/corpus_coverage.py [--check]

Exit status 1 if a row has no file or problem, a file has no row, or the rows are not sorted. A mechanism without a
file is listed at the end: corpus/README.md says why it has none.
"""

from __future__ import annotations

import argparse
import collections
import csv
import re
import sys
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
# Sections of the catalogue: letter, first and last number, subject.
SECTIONS = [
    ("A", 1, 21, "timing"),
    ("B", 22, 35, "output or result reuse"),
    ("C", 36, 54, "correctness"),
    ("D", 55, 65, "no work, delegation"),
    ("E", 66, 85, "process and harness"),
]


def load() -> list[dict[str, str]]:
    with open(CORPUS / "labels.csv", newline="") as file:
        return list(csv.DictReader(file))


def problems(rows: list[dict[str, str]]) -> list[str]:
    """What is wrong with the labels, one line each."""
    found = []
    for row in rows:
        if not (CORPUS / row["label"] / f"{row['id']}.py").is_file():
            found.append(f"{row['id']}: no file {row['label']}/{row['id']}.py")
        if not (CORPUS / row["problem"]).is_file():
            found.append(f"{row['id']}: no problem {row['problem']}")
        if not row["verdict"] or not row["targets"]:
            found.append(f"{row['id']}: no verdict or target")
        if (row["label"] == "honest") != (row["verdict"].split("|")[0] == "accepted") and not row["note"]:
            found.append(f"{row['id']}: an unusual verdict needs a note")
    for label in ("honest", "wrong", "hack"):
        known = {row["id"] for row in rows if row["label"] == label}
        found += [f"{path.name}: no row" for path in (CORPUS / label).glob("*.py") if path.stem not in known]
    keys = [(row["label"], row["id"]) for row in rows]
    if keys != sorted(keys) or len(set(keys)) != len(keys):
        found.append("rows are not sorted by label and id, or not unique")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only check labels.csv")
    args = parser.parse_args()
    rows = load()
    found = problems(rows)
    for line in found:
        print(line, file=sys.stderr)
    if args.check:
        return 1 if found else 0
    files: dict[str, list[str]] = collections.defaultdict(list)
    for row in rows:
        for mechanism in row["mechanism"].split():
            files[mechanism].append(f"{row['id']}")
    print("| mechanism | files | which |")
    print("|---|---|---|")
    missing = []
    for letter, first, last, subject in SECTIONS:
        for number in range(first, last + 1):
            names = sorted(files.get(f"{letter}{number}", []))
            if not names:
                missing.append(f"{letter}{number}")
                continue
            shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
            print(f"| {letter}{number} ({subject}) | {len(names)} | {shown} |")
    for mechanism in sorted((m for m in files if m.startswith("S")), key=lambda m: int(re.sub(r"\D", "", m[2:]))):
        print(f"| {mechanism} (reported bug) | {len(files[mechanism])} | {', '.join(sorted(files[mechanism])[:6])} |")
    print()
    print(f"Without a file: {', '.join(missing) or 'none'}")
    tally = collections.Counter(row["label"] for row in rows)
    print(", ".join(f"{count} {label}" for label, count in sorted(tally.items())))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
