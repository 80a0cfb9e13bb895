#!/usr/bin/env python3
"""Times what the offline teacher writes against eager torch and torch.compile, at the realistic sizes of a module file.

For choosing defaults (tile sizes, precision of products, order of loops); verdicts come from `tilewright verify`.
TF32 is off for the reference. Each candidate is compared with the reference before it is timed. Times are medians in
milliseconds with the 95 % interval of the median (order statistics); calls of the three take turns in two rounds, and
the second one's times are added to the first one's.

    scripts/gpu/teach_bench.py FILE[:OPTIONS]... --json out.json --seconds 100
    scripts/gpu/teach_bench.py examples/modules/*/*.py --workers 14 --resume out.json --json out.json --seconds 300

With `--workers` many files are prepared at the same time, each in a process of its own, and timed one after the other;
what the others launch meanwhile, a few calls each, is in the spread. `--resume` leaves out what a file has times of.

OPTIONS is a Python dict of the teacher's options, such as `{"precision": "tf32x3"}`; several `FILE:OPTIONS` of
one file share the reference.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import fcntl
import importlib.util
import json
import math
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import torch
import triton.testing
from tilewright.cell import oracle_problem
from tilewright.teacher import capture as capturing
from tilewright.teacher import teach


def realistic(path: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A copy of a problem at its realistic sizes."""
    text = path.read_text()
    if "REALISTIC = " in text:
        text += "\n\nglobals().update(REALISTIC)\nCASES = []\n"
    made = folder / f"{path.parent.name}_{path.name}"
    made.write_text(text)
    return made


def load(path: pathlib.Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def milliseconds(call: Any, rep: int) -> list[float]:
    """Times of single calls."""
    return list(triton.testing.do_bench(call, warmup=10, rep=rep, return_mode="all"))


def summary(times: list[float]) -> list[float]:
    """Median, and the ends of its 95 % interval."""
    times = sorted(times)
    n = len(times)
    reach = 0.98 * n**0.5  # half the width in ranks: 1.96 * sqrt(n) / 2
    low, high = max(int(n / 2 - reach), 0), min(int(n / 2 + reach) + 1, n - 1)
    return [round(t, 5) for t in (statistics.median(times), times[low], times[high])]


def compare(got: Any, want: Any) -> float:
    """The largest rms error of an output, relative to the reference's rms."""
    worst = 0.0
    for a, b in zip(torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want), strict=True):
        if isinstance(b, torch.Tensor) and b.is_floating_point():
            gap = (a.float() - b.float()).square().mean().sqrt() / (b.float().square().mean().sqrt() + 1e-30)
            worst = max(worst, float(gap))
        elif isinstance(b, torch.Tensor):
            worst = max(worst, float((a != b).float().mean()))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--json", required=True)
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--workers", type=int, default=0, help="processes that prepare files [default: this one]")
    parser.add_argument("--resume", help="leave out what this file has times of")
    options = parser.parse_args()
    rows = finished(options.resume)
    jobs: dict[str, list[dict[str, Any]]] = {}
    for text in options.problems:
        file, _, given = text.partition(":")
        if file not in {row["file"] for row in rows}:
            jobs.setdefault(file, []).append(eval(given) if given else {})
    options.lock = str(pathlib.Path(tempfile.mkdtemp()) / "lock")
    until = time.monotonic() + options.seconds
    for row in (by_workers if options.workers else in_turn)(jobs, options, until):
        rows.append(row)
        print(json.dumps(row), flush=True)
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    show(rows)
    sys.stdout.flush()
    os._exit(0)  # workers that are not done are of no use


def finished(path: str | None) -> list[dict[str, Any]]:
    """The rows of an earlier run that have times."""
    if path is None or not pathlib.Path(path).exists():
        return []
    return [row for row in json.loads(pathlib.Path(path).read_text()) if row.get("eager")]


def in_turn(jobs: dict[str, list[dict[str, Any]]], options: Any, until: float) -> Iterator[dict[str, Any]]:
    for file, variants in jobs.items():
        if time.monotonic() > until:
            yield {"file": file, "skipped": "out of time"}
        else:
            yield safely(file, variants, options)


def by_workers(jobs: dict[str, list[dict[str, Any]]], options: Any, until: float) -> Iterator[dict[str, Any]]:
    # One compiling process each; there are as many of these as processors.
    os.environ |= {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    pool = concurrent.futures.ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn"))
    waiting = {pool.submit(safely, file, variants, options): file for file, variants in jobs.items()}
    try:
        for future in concurrent.futures.as_completed(waiting, timeout=max(until - time.monotonic(), 1.0)):
            file = waiting.pop(future)
            try:
                yield future.result()
            except Exception as error:  # the worker died
                yield {"file": file, "error": f"{type(error).__name__}: {str(error)[:300]}"}
    except concurrent.futures.TimeoutError:
        pass
    for process in list((pool._processes or {}).values()):
        process.kill()
    yield from ({"file": file, "skipped": "out of time"} for file in waiting.values())


def safely(file: str, variants: list[dict[str, Any]], options: Any) -> dict[str, Any]:
    """The row of a file, or what went wrong."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.set_num_threads(1)
    try:
        return one(pathlib.Path(file), variants, pathlib.Path(tempfile.mkdtemp()), options)
    except Exception as error:
        return {"file": file, "error": f"{type(error).__name__}: {str(error)[:300]}"}
    finally:
        torch.cuda.empty_cache()


@contextlib.contextmanager
def alone(path: str) -> Iterator[None]:
    """While no other worker takes times."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def show(rows: list[dict[str, Any]]) -> None:
    """A line for each file: milliseconds of the first variant, speedups with intervals, and the fastest variant."""
    logs: dict[str, list[float]] = {"eager": [], "compile": []}
    for row in sorted(rows, key=lambda row: row["file"]):
        name = "/".join(pathlib.Path(row["file"]).with_suffix("").parts[-2:])
        timed = [v for v in row.get("variants", []) if v.get("ms")]
        if not timed:
            failures = [v.get("failure") for v in row.get("variants", [])]
            print(f"{name:<48} {row.get('error') or row.get('skipped') or failures}"[:300])
            continue
        texts = []
        for baseline in logs:
            if row.get(baseline):
                ours, theirs = timed[0]["ms"], row[baseline]
                ratio, low, high = theirs[0] / ours[0], theirs[1] / ours[2], theirs[2] / ours[1]
                logs[baseline].append(math.log(ratio))
                texts.append(f"{baseline} {theirs[0]:.4f} ({ratio:.2f}, {low:.2f} to {high:.2f})")
        best = min(timed, key=lambda v: v["ms"][0])
        more = f"  best {best['ms'][0]:.4f} {best['options']}" if len(timed) > 1 else ""
        print(f"{name:<48} {timed[0]['ms'][0]:.4f}  {'  '.join(texts)}{more}")
    for baseline, found in logs.items():
        if found:
            print(f"geometric mean against {baseline}: {math.exp(sum(found) / len(found)):.3f} of {len(found)}")


def one(file: pathlib.Path, variants: list[dict[str, Any]], folder: pathlib.Path, options: Any) -> dict[str, Any]:
    path = realistic(file, folder)
    case = oracle_problem.make_case(str(path), oracle_problem.load(str(path), path.read_text()), "default")
    with torch.device("cuda"):
        torch.manual_seed(0)
        model = case.build().cuda()
        args = [a.cuda() if isinstance(a, torch.Tensor) else a for a in case.inputs()]
    row: dict[str, Any] = {"file": str(file), "variants": []}
    with torch.no_grad():
        want = model(*args)
        calls: dict[str, Any] = {"eager": lambda: model(*args)}
        if not options.no_compile:
            try:
                torch._dynamo.reset()
                compiled = torch.compile(model)
                compiled(*args)
                calls["compile"] = lambda: compiled(*args)
            except Exception as error:
                row["compile_error"] = str(error)[:200]
        problem = capturing.capture(str(path))
        for number, given in enumerate(variants):
            entry: dict[str, Any] = {"options": str(given)}
            row["variants"].append(entry)
            try:
                made = folder / f"{path.stem}_{number}.py"
                made.write_text(teach.write(problem, given))
                candidate = load(made).ModelNew(*case.init_args, **case.init_kwargs).cuda().train(case.training)
                candidate.load_state_dict(model.state_dict())
                entry["error"] = compare(candidate(*args), want)
                calls[f"variant {number}"] = lambda candidate=candidate: candidate(*args)
            except Exception as error:
                entry["failure"] = f"{type(error).__name__}: {str(error)[-300:]}"
        del want
        for call in calls.values():
            call()  # compiled by now, all of it
        torch.cuda.synchronize()
        times: dict[str, list[float]] = {name: [] for name in calls}
        with alone(options.lock):
            for _ in range(2):
                for name, call in calls.items():
                    times[name] += milliseconds(call, 30)
        found = {name: summary(measured) for name, measured in times.items()}
        row |= {name: found[name] for name in ("eager", "compile") if name in found}
        for number, entry in enumerate(row["variants"]):
            entry["ms"] = found.get(f"variant {number}")
    return row


if __name__ == "__main__":
    main()
