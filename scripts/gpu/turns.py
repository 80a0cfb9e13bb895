"""What a turn on a GPU consists of, and what jobs took of processors: sums up what the log says. Prints Markdown.

TILEWRIGHT_LOG=tilewright_replay=debug,tilewright_stage=debug tilewright verify --batch … 2>LOG
python3 scripts/gpu/turns.py LOG [--candidates 120]
"""

from __future__ import annotations

import argparse
import collections
import re
import statistics
from pathlib import Path

ASKED = re.compile(r"asked the (?P<whom>[\w ]+?) micros=(?P<micros>\d+) what=\"(?P<what>\w+)\"")
SPENT = re.compile(r"(?P<whom>the executor ran|results of) .*?spent=(?P<parts>.*)$")
JOB = re.compile(r"job ended kind=\"(?P<kind>\w+)\" seconds=\S+ cpu_seconds=(?P<cpu>[\d.e-]+)")
PART = re.compile(r"\"(\w+)\"[:,] (\d+)")


def times(log: str) -> dict[str, list[float]]:
    """Milliseconds by what was done."""
    found: dict[str, list[float]] = collections.defaultdict(list)
    for line in log.splitlines():
        if asked := ASKED.search(line):
            found[f"{asked['whom']}: {asked['what']}"].append(int(asked["micros"]) / 1e3)
        elif job := JOB.search(line):
            found[f"job {job['kind']}: processor time"].append(float(job["cpu"]) * 1e3)
        elif spent := SPENT.search(line):
            whom = "executor" if spent["whom"].startswith("the") else "process that holds data"
            for name, micros in PART.findall(spent["parts"]):
                found[f"within {whom}: {name}"].append(int(micros) / 1e3)
    return found


def main() -> None:
    """Read a log and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--candidates", type=int, help="to divide sums by")
    options = parser.parse_args()
    found = times(options.log.read_text(errors="replace"))
    print("| what | times | median ms | longest ms | sum ms | ms a candidate |\n|---|---|---|---|---|---|")
    for name, each in sorted(found.items(), key=lambda item: -sum(item[1])):
        share = f"{sum(each) / options.candidates:.2f}" if options.candidates else ""
        print(f"| {name} | {len(each)} | {statistics.median(each):.2f} | {max(each):.1f} | {sum(each):.0f} | {share} |")


if __name__ == "__main__":
    main()
