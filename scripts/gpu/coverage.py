"""Every candidate of problems/ and a share of the corpus's wrong ones on this GPU, by one service. Prints Markdown.

    python3 scripts/gpu/coverage.py BINARY [--paths] [--confirm] [--timed] [--wrong 8] [--out FILE.jsonl]

With --paths, a second service gets the same candidates under the same seed with data that go through the host's memory:
verdicts, reasons and figures must be equal. With --confirm, accepted files are run unmodified and held against their
plans. Exit status: 0 every verdict is one that its label allows, and both ways agree.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Task:
    name: str
    problem: Path
    candidate: Path
    allowed: list[str]


def tasks(every: int, only: str) -> list[Task]:
    """The problems' own candidates, and after every third of them a wrong one of the corpus."""
    own = [
        Task(p.parent.name, p, p.with_name("candidate.py"), ["accepted"]) for p in Path("problems").glob("*/problem.py")
    ]
    own.sort(key=lambda task: task.name)
    with open("corpus/labels.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["label"] == "wrong" and "cuda" in row["targets"]]
    corpus = Path("corpus")
    wrong = [
        Task(row["id"], corpus / row["problem"], corpus / "wrong" / f"{row['id']}.py", row["verdict"].split("|"))
        for row in (rows[::every] if every else [])
    ]
    mixed = []
    for task in own:
        mixed.append(task)
        if len(mixed) % 4 == 3 and wrong:
            mixed.append(wrong.pop(0))
    return [task for task in (*mixed, *wrong) if re.search(only, task.name)]


def answers(options: argparse.Namespace, asked: list[Task], *more: str, host_data: bool = False) -> dict[int, Any]:
    """What a service says of each, as far as it comes in time."""
    environment = {**os.environ, **({"TILEWRIGHT_HOST_DATA": "1"} if host_data else {})}
    command = [options.binary, "verify", "--batch", "-", "--target", options.target, "--seed", str(options.seed)]
    command += ["--trials", str(options.trials), "--jobs", str(options.jobs), "--timeout", str(options.timeout), *more]
    start = time.monotonic()
    with (
        tempfile.TemporaryFile("w+") as requests,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        for number, task in enumerate(asked):
            request = {"id": number, "problem": str(task.problem), "candidate": str(task.candidate)}
            requests.write(json.dumps(request) + "\n")
        requests.seek(0)
        process = subprocess.Popen(command, stdin=requests, stdout=out, stderr=err, env=environment)
        try:
            process.wait(options.limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        out.seek(0)
        err.seek(0)
        lines = [line for line in out if line.endswith("\n")]
        said = err.read()
    found = {answer["id"]: answer for answer in map(json.loads, lines)}
    way = "through the host" if host_data else "shared"
    print(f"{len(found)} of {len(asked)} answers, data {way}, {time.monotonic() - start:.1f} s", flush=True)
    if len(found) < len(asked):
        missing = [task.name for number, task in enumerate(asked) if number not in found]
        print(f"missing: {', '.join(missing)}\n{said[-1500:]}", flush=True)
    return found


def alike(a: Any, b: Any) -> bool:
    """Equal but for the order of sums; of elements that are equally bad, either may be told."""
    if isinstance(a, dict):
        same = isinstance(b, dict) and a.keys() == b.keys()
        return same and all(alike(a[key], b[key]) for key in a if key != "worst")
    if isinstance(a, float | int) and isinstance(b, float | int):
        return a == b or abs(a - b) <= 1e-6 * max(abs(a), abs(b))
    return a == b


def differs(shared: dict[str, Any], host: dict[str, Any]) -> list[str]:
    """What two verdicts on one candidate do not have in common."""
    different = [] if shared["verdict"] == host["verdict"] else ["verdict"]
    if not alike(shared["profiles"], host["profiles"]):
        different.append("figures")
    codes = [[reason["code"] for reason in verdict["reasons"]] for verdict in (shared, host)]
    if codes[0] != codes[1]:
        different.append("reasons")
    elif shared["reasons"] != host["reasons"]:
        different.append("words")
    return different


def times(timing: dict[str, Any] | None) -> tuple[str, str, str]:
    """Device time, speedups, and how many times as long it takes as anything that is right must."""
    if not timing:
        return "", "", ""
    device, least = timing["device_us"], (timing.get("limit") or {}).get("least_us")
    speedups = ", ".join(f"{one['speedup']['value']:.2f}" for one in timing["baselines"])
    return f"{device['value']:.1f}", speedups, f"{device['high'] / least:.2f}" if least else "no floor"


def main() -> int:
    """Run them, print one row each and what is unusual in full."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--target", default="cuda:0")
    parser.add_argument("--paths", action="store_true")
    parser.add_argument("--confirm", action="store_true")
    parser.add_argument("--timed", action="store_true")
    parser.add_argument(
        "--wrong", type=int, default=0, metavar="N", help="every Nth wrong candidate of the corpus; 0 for none"
    )
    parser.add_argument("--only", default="", help="names that this regular expression finds")
    parser.add_argument(
        "--first", default="", help="names that this regular expression finds come first: time may be over"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--timeout", type=int, default=60, help="seconds for each candidate")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for all of them")
    parser.add_argument("--out", type=Path, help="verdicts as JSON lines")
    options = parser.parse_args()
    asked = tasks(options.wrong, options.only)
    asked.sort(key=lambda task: not re.search(options.first, task.name))
    timed = [] if options.timed else ["--untimed"]
    with ThreadPoolExecutor() as pool:
        first = pool.submit(answers, options, asked, *timed, *(["--confirm"] if options.confirm else []))
        second = pool.submit(answers, options, asked, "--untimed", host_data=True) if options.paths else None
        shared, host = first.result(), second.result() if second else {}
    if options.out:
        options.out.write_text("".join(json.dumps(shared[key]) + "\n" for key in sorted(shared)))
    bad, unusual, tally = 0, [], collections.Counter()
    head = [
        "candidate",
        "verdict",
        "labelled",
        "both_ways",
        "replay_s",
        "judge_s",
        "device_us",
        "speedup",
        "over_the_floor",
        "notes",
    ]
    print(f"\n| {' | '.join(head).replace('_', ' ')} |\n|{'---|' * len(head)}")
    for number, task in enumerate(asked):
        answer, other = shared.get(number, {}), host.get(number, {})
        verdict = answer.get("verdict")
        if verdict is None:
            bad += 1
            print(f"| {task.name} | none: {str(answer.get('error', ''))[:100]} | **NO** {'| ' * (len(head) - 2)}")
            continue
        good = verdict["verdict"] in task.allowed
        confirmed = any(note.startswith("confirmed") for note in verdict["notes"])
        if options.confirm and verdict["verdict"] == "accepted":
            tally["confirmed" if confirmed else "not confirmed"] += 1
            good &= confirmed
        different = differs(verdict, other["verdict"]) if other.get("verdict") else ["missing"] * options.paths
        # What was refused by its run has no counterpart: only figures are compared.
        same = "-" if not options.paths else ", ".join(different) or "equal"
        tally[f"{'right' if good else 'wrong'}: {verdict['verdict']}"] += 1
        tally[f"both ways: {same}"] += options.paths
        bad += not good or bool(set(different) - {"words"})
        if not good or different:
            unusual.append((task, verdict, other.get("verdict"), different))
        seconds = {stage["stage"]: f"{stage['seconds']:.2f}" for stage in verdict["stages"]}
        notes = "; ".join(note[:90] for note in verdict["notes"] if not note.startswith("confirmed")).replace("|", "/")
        cells = [task.name, verdict["verdict"], "yes" if good else "**NO**", same, seconds.get("replay", "")]
        cells += [seconds.get("judge", ""), *times(verdict.get("timing")), notes[:200]]
        print(f"| {' | '.join(cells)} |")
    print("\n" + "\n".join(f"- {count} {what}" for what, count in sorted(tally.items()) if count))
    for task, verdict, other, different in unusual:
        print(f"\n{task.name} (label: {' or '.join(task.allowed)}) {different}")
        for kind, one in (("shared", verdict), ("host", other)):
            kept = {key: one.get(key) for key in ("verdict", "reasons", "notes", "profiles")} if one else None
            print(f"  {kind}: {json.dumps(kept)[:1600]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
