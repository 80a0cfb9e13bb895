#!/usr/bin/env python3
"""Times what the offline teacher writes against eager torch and torch.compile, at the realistic sizes of a module file.

For choosing defaults (tile sizes, precision of products, order of loops); verdicts come from `tilewright verify`.
TF32 is off for the reference. Each candidate is compared with the reference before it is timed. Times are medians in
milliseconds with the 95 % interval of the median (order statistics); calls of the three take turns in two rounds, and
the second one's times are added to the first one's.

    scripts/gpu/teach_bench.py FILE[:OPTIONS]... --json out.json --seconds 100

OPTIONS is a Python dict of the teacher's options, such as `{"precision": "tf32x3"}`; several `FILE:OPTIONS` of
one file share the reference.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import statistics
import sys
import tempfile
import time
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--json", required=True)
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--no-compile", action="store_true")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    folder = pathlib.Path(tempfile.mkdtemp())
    jobs: dict[str, list[dict[str, Any]]] = {}
    for text in options.problems:
        file, _, given = text.partition(":")
        jobs.setdefault(file, []).append(eval(given) if given else {})
    started, rows = time.monotonic(), []
    for file, variants in jobs.items():
        if time.monotonic() - started > options.seconds:
            rows.append({"file": file, "skipped": "out of time"})
            continue
        try:
            rows.append(one(pathlib.Path(file), variants, folder, options))
        except Exception as error:
            rows.append({"file": file, "error": f"{type(error).__name__}: {str(error)[:300]}"})
        torch.cuda.empty_cache()
        print(json.dumps(rows[-1]), flush=True)
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    return 0


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
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(2):
            for name, call in calls.items():
                times[name] += milliseconds(call, 30)
        found = {name: summary(measured) for name, measured in times.items()}
        row |= {name: found[name] for name in ("eager", "compile") if name in found}
        for number, entry in enumerate(row["variants"]):
            entry["ms"] = found.get(f"variant {number}")
    return row


if __name__ == "__main__":
    sys.exit(main())
