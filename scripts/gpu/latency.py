"""How long one candidate takes on a warm service, from handing it in to its verdict. Prints Markdown.

    python3 scripts/gpu/latency.py BINARY [--count 50] [--target cuda:0] [--kind softmax] [--small] [--out FILE]

One at a time, each with kernels that no cache knows.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import candidates
from service import Service, end_on_signal

WARM_UP = 3
ON_GPU = ("replay", "prepare", "time")
"""Stages within which an executor works."""


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Asks one after the other, until somebody wants an end."""
    made = candidates.write(folder, WARM_UP + options.count, options.small, options.seed, 20_000, [options.kind])
    timing = [] if options.target == "cpu" else options.timing.split()
    begun = time.monotonic()
    service = Service(options.binary, options.target, "--trials", str(options.trials), "--timeout", "60", *timing)
    first, seconds, on_gpu, kinds, stages = None, [], [], collections.Counter(), collections.defaultdict(list)
    for at, candidate in enumerate(made):
        start = time.monotonic()
        service.ask(at, candidate.problem, candidate.path)
        answer = next(service.take(1, 300.0), None)
        if answer is None:
            break
        moment, body = answer
        print(f"{at}: {moment - start:.3f} s", file=sys.stderr, flush=True)
        first = first or moment - begun
        if at < WARM_UP:
            continue
        verdict = body.get("verdict") or {"verdict": str(body.get("error")), "stages": []}
        seconds.append(moment - start)
        kinds[verdict["verdict"]] += 1
        for stage in verdict["stages"]:
            stages[stage["stage"]].append(stage["seconds"])
        on_gpu.append(sum(stage["seconds"] for stage in verdict["stages"] if stage["stage"] in ON_GPU))
    log = service.close(1.0)
    stages.pop("oracle", None)
    return {
        "kind": options.kind,
        "verdicts": dict(kinds),
        "first": first,
        "p50": quantile(seconds, 0.5),
        "p90": quantile(seconds, 0.9),
        "p99": quantile(seconds, 0.99),
        "gpu_p50": quantile(on_gpu, 0.5),
        "gpu_p99": quantile(on_gpu, 0.99),
        "stages": {name: [quantile(times, share) for share in (0.5, 0.99)] for name, times in stages.items()},
        "log": log[-500:],
    }


def quantile(values: list[float], share: float) -> float | None:
    """The value that this share of all does not pass."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)] if values else None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--target", default="cuda:0")
    parser.add_argument("--kind", default="softmax")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--timing", default="--baseline eager")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    end_on_signal()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        os.environ["TILEWRIGHT_CACHE"] = cache
        found = measure(options, Path(folder))
    show = lambda value: "-" if value is None else f"{value:.3f}"  # noqa: E731
    print("| candidate of | verdicts | start to first, s | p50 s | p90 s | p99 s | on the GPU, p50 s | p99 s |")
    print("|---|---|---|---|---|---|---|---|")
    figures = " | ".join(show(found[name]) for name in ("first", "p50", "p90", "p99", "gpu_p50", "gpu_p99"))
    print(f"| {found['kind']} | {found['verdicts']} | {figures} |")
    stages = (f"{name} {show(median)} ({show(high)})" for name, (median, high) in found["stages"].items())
    print("stages, p50 (p99) s:", ", ".join(stages))
    if not found["p50"]:
        print(found["log"])
    sys.stdout.flush()
    if options.out:
        options.out.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
