"""How many verdicts a second: distinct candidates through a running service. Prints Markdown, and JSON into --out.

    python3 scripts/gpu/throughput.py BINARY [--count 200] [--target cuda:0] [--plain 20] [--small] [--out FILE]

First one candidate of each problem, which loads the problems (the first figure); then all the others at once, which are
what is measured. With --plain, some of them by a plain baseline too: a fresh Python process for each, in turn.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import candidates
from service import ENDED, Service, Watch, end_on_signal, processor_seconds


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Warm up, then all candidates."""
    kinds = options.kinds.split(",") if options.kinds else None
    number = len(kinds or candidates.KINDS)
    first = candidates.write(folder, number, options.small, options.seed, 0, kinds)
    rest = candidates.write(folder, options.count, options.small, options.seed, number, kinds)
    texts = {made.path.read_bytes() for made in (*first, *rest)}
    assert len(texts) == len(first) + len(rest), "candidates repeat"
    timing = [] if options.target == "cpu" else options.timing.split()
    extra = ["--trials", str(options.trials), "--problems", str(number + 2), "--timeout", "60", *timing]
    extra += ["--jobs", str(options.jobs)] if options.jobs else []
    started = time.monotonic()
    service = Service(options.binary, options.target, *extra)
    warm = ask(service, first, started, options.limit)
    print(f"{len(warm)} of {len(first)} after {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
    watch, start, before = Watch(), time.monotonic(), processor_seconds(service.process.pid)
    found = ask(service, rest, start, options.limit)
    seen, after = watch.end(), processor_seconds(service.process.pid)
    log = service.close(30.0 if len(found) == len(rest) else 1.0)
    if len(found) < len(rest) or len(warm) < len(first):
        print(f"answers are missing: {len(warm)} of {len(first)}, {len(found)} of {len(rest)}\n{log}", file=sys.stderr)
    return {
        "warm": summary(warm),
        **summary(found),
        **seen,
        "processor": {part: max(after[part] - before[part], 0.0) for part in after},
        "candidates": len(rest),
        "problems": number,
        "log": log[-500:],
    }


def ask(service: Service, asked: list[candidates.Candidate], start: float, limit: float) -> list[dict[str, Any]]:
    """Answers to all of them, each with the seconds from the start to its coming."""
    service.ask_all([(at, made.problem, made.path) for at, made in enumerate(asked)])
    return [{**answer, "at": moment - start} for moment, answer in service.take(len(asked), limit)]


def summary(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Rates, verdicts and times of stages."""
    verdicts = [answer["verdict"] for answer in answers if answer.get("verdict")]
    wall = max((answer["at"] for answer in answers), default=0.0)
    stages, cached = collections.defaultdict(list), 0
    for verdict in verdicts:
        for stage in verdict["stages"]:
            stages[stage["stage"]].append(stage["seconds"])
            cached += stage["stage"] == "compile" and stage["cached"]
    stages.pop("oracle", None)  # once for a problem, and told in each of its verdicts
    kinds = collections.Counter(verdict["verdict"] for verdict in verdicts)
    others = [v for v in verdicts if v["verdict"] != "accepted"]
    total = sum(sum(times) for times in stages.values()) or 1.0
    turns = sum(stages.get("time", []))
    return {
        "first": min((answer["at"] for answer in answers), default=0.0),
        "seconds": wall,
        "verdicts_per_second": len(verdicts) / wall if wall else 0.0,
        "kernels_per_second": sum(len(verdict["resources"]) for verdict in verdicts) / wall if wall else 0.0,
        "verdicts": dict(kinds),
        "compiled_before": cached,
        "timed": sum(verdict.get("timing") is not None for verdict in verdicts),
        "lane_busy": turns / wall if wall else 0.0,
        "stages": {
            name: {
                "median": statistics.median(times),
                "sum": sum(times),
                "share": sum(times) / total,
                "max": max(times),
            }
            for name, times in sorted(stages.items(), key=lambda stage: -sum(stage[1]))
        },
        "seconds_each": statistics.median(answer["seconds"] for answer in answers if "seconds" in answer)
        if answers
        else 0.0,
        "others": [
            {"candidate": v["candidate"]["path"], "verdict": v["verdict"], "reasons": v["reasons"][:2]}
            for v in others[:8]
        ],
        "notes": collections.Counter(note[:160] for verdict in verdicts for note in verdict["notes"]).most_common(8),
        "errors": [answer["error"] for answer in answers if answer.get("error")][:8],
    }


def plain(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Some candidates, one after the other, each in a fresh process with nothing compiled."""
    kinds = options.kinds.split(",") if options.kinds else None
    sample = candidates.write(folder, options.plain, options.small, options.seed, 10_000, kinds)
    script, seconds, correct, errors = Path(__file__).with_name("plain.py"), [], 0, []
    python = os.environ.get("TILEWRIGHT_PYTHON", sys.executable)
    for made in sample:
        if ENDED.is_set():
            break
        with tempfile.TemporaryDirectory() as cache:
            start = time.monotonic()
            command = [python, str(script), str(made.problem), str(made.path)]
            done = subprocess.run(
                command, capture_output=True, text=True, env={**os.environ, "TRITON_CACHE_DIR": cache}
            )
        if ENDED.is_set():
            break  # it was ended too
        seconds.append(time.monotonic() - start)
        if done.returncode == 0:
            correct += json.loads(done.stdout)["correct"]
        else:
            errors.append(done.stderr[-300:])
    return {
        "candidates": len(seconds),
        "correct": correct,
        "median_seconds": statistics.median(seconds) if seconds else None,
        "per_second": len(seconds) / sum(seconds) if seconds else None,
        "errors": errors[:3],
    }


def processor(found: dict[str, Any]) -> str:
    """Processor time by who took it: the service itself, executors, forks, jobs that ended, who holds data."""
    count = max(sum(found["verdicts"].values()), 1)
    return ", ".join(f"{part} {1e3 * seconds / count:.0f}" for part, seconds in found["processor"].items())


def table(found: dict[str, Any]) -> str:
    """The figures as Markdown."""
    share = lambda value: "-" if value is None else f"{value:.0%}"  # noqa: E731
    rows = [
        ("verdicts a second", f"{found['verdicts_per_second']:.2f}"),
        ("candidates, problems", f"{found['candidates']}, {found['problems']}"),
        ("verdicts", ", ".join(f"{count} {kind}" for kind, count in found["verdicts"].items())),
        ("timed", str(found["timed"])),
        ("kernels compiled a second", f"{found['kernels_per_second']:.1f}"),
        ("answered by the cache of compiled kernels", str(found["compiled_before"])),
        ("from the start to the first verdict, seconds", f"{found['warm']['first']:.1f}"),
        ("loading the problems, seconds", f"{found['warm']['seconds']:.1f} ({found['warm']['verdicts']})"),
        ("seconds for a candidate, median", f"{found['seconds_each']:.2f}"),
        ("cores in use", f"{found['cores_busy']:.1f} of {os.cpu_count()}"),
        ("processor ms of a candidate", processor(found)),
        ("GPU taken by turns", share(found["lane_busy"])),
        ("GPU busy by its driver", share(found["gpu_busy_by_driver"])),
        ("host memory, peak", f"{found['host_bytes_peak'] / 2**30:.1f} GiB"),
        ("GPU memory, peak", "-" if found["gpu_mib_peak"] is None else f"{found['gpu_mib_peak'] / 1024:.1f} GiB"),
    ]
    if (by := found.get("plain")) is not None and by["per_second"]:
        rows.append(
            (
                "a plain baseline, verdicts a second",
                f"{by['per_second']:.3f} ({by['correct']} of {by['candidates']} correct)",
            )
        )
        rows.append(("ratio", f"{found['verdicts_per_second'] / by['per_second']:.0f}"))
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows), ""]
    lines += ["| stage | median s | sum s | share |", "|---|---|---|---|"]
    for name, stage in found["stages"].items():
        lines.append(f"| {name} | {stage['median']:.4f} | {stage['sum']:.2f} | {stage['share']:.1%} |")
    for other in found["others"]:
        lines.append(f"\n{other['candidate']}: {other['verdict']} {json.dumps(other['reasons'])[:400]}")
    lines += [f"\n{count} x {note}" for note, count in found["notes"]]
    lines += [f"\nno request: {error}" for error in found["errors"]]
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--target", default="cuda:0")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--timing", default="--baseline eager", help="options of the binary that say what is timed")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--kinds", help="problems by name, separated by commas; without it, all")
    parser.add_argument("--plain", type=int, default=0, help="candidates for the plain baseline")
    parser.add_argument("--small", action="store_true", help="sizes for a machine without a GPU")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds to wait for answers")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    end_on_signal()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        os.environ["TILEWRIGHT_CACHE"] = cache
        found = measure(options, Path(folder))
        print(table(found), flush=True)
        if options.plain:
            found["plain"] = plain(options, Path(folder))
    for line in table(found).splitlines() if options.plain else []:
        if "plain" in line or "ratio" in line:
            print(line, flush=True)
    if options.out:
        options.out.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
