"""Kills a benchmark at random moments and goes on with it: every sample must end with exactly one verdict.

    python3 scripts/bench_kills.py BINARY [--kills 10] [--samples 24] [--seed 1] [--target cpu]

Samples are one candidate of `problems/strided_add` in several wordings, every fifth one wrong. Prints one line for each
kill and exits with 1 if a verdict is lost, doubled or other than the text's, or if a process outlives its run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROBLEM = ROOT / "problems" / "strided_add"


def write_samples(folder: Path, count: int) -> None:
    """Distinct texts; every fifth one has no candidate in it."""
    folder.mkdir()
    source = (PROBLEM / "candidate.py").read_text()
    for number in range(count):
        text = "I cannot do that.\n" if number % 5 == 4 else source
        (folder / f"strided_add__sample_{number}.py").write_text(f"# Sample {number}.\n{text}")


def verdicts(log: Path) -> Counter[str]:
    """How many whole lines there are for each candidate's digest."""
    lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return Counter(line["verdict"]["candidate"]["digest"] for line in whole if "verdict" in line)


def children(group: int) -> list[int]:
    """Processes of a session that are still there."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[3]) == group and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def main() -> int:
    """Kill, look, go on; then to the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--samples", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", default="cpu")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        suite, samples, run = folder / "suite", folder / "samples", folder / "run"
        (suite / "strided_add").mkdir(parents=True)
        (suite / "strided_add" / "problem.py").write_text((PROBLEM / "problem.py").read_text())
        write_samples(samples, options.samples)
        command = [options.binary, "bench", "run", str(suite), str(samples), "--out", str(run), "--trials", "1"]
        command += ["--no-controls", "--untimed", "--target", options.target, "--jobs", "2", "--json"]
        log, wrong, before = run / "run.jsonl", 0, 0
        for kill in range(options.kills):
            start = time.monotonic()
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
            )
            # After so many verdicts more, and a moment; the first time perhaps before there is any.
            more, moment = rng.randint(min(kill, 1), 3), rng.uniform(0.0, 0.5)
            while sum(verdicts(log).values()) < before + more and process.poll() is None:
                time.sleep(0.02)
            time.sleep(moment)
            finished = process.poll() is not None
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            time.sleep(1.0)
            left, counts = children(process.pid), verdicts(log)
            before = sum(counts.values())
            doubled = sum(count - 1 for count in counts.values())
            wrong += doubled + len(left)
            state = "had ended" if finished else f"killed after {time.monotonic() - start - 1.0:.1f} s"
            print(
                f"{kill + 1:3}  {state}: {before} verdicts, {doubled} doubled, {len(left)} processes left", flush=True
            )
        report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    counts, failed = report["counts"], options.samples // 5
    want = {"samples": options.samples, "accepted": options.samples - failed, "failed": failed, "missing": 0}
    got = {key: counts[key] for key in want}
    print(f"to the end: {got}, wanted {want}")
    return int(wrong > 0 or got != want)


if __name__ == "__main__":
    sys.exit(main())
