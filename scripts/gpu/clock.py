"""How well the clock repeats, agrees with other clocks and tells slower kernels: prints Markdown.

    python3 scripts/gpu/clock.py BINARY [--runs 20] [--slow-runs 4] [--only PROBLEM ...] [--out DIR]

Each problem of scripts/gpu/clock is verified many times, and so are variants that do the first 2 % or 5 % of their work
twice: told apart are, of equal ones, pairs, and of slower ones, those below the first equal one. Beside that, the
candidate is run here and timed by triton.testing.do_bench and by torch's profiler (the kernel's own time, with the
cache flushed before each call).
"""

import argparse
import importlib.util
import itertools
import json
import statistics
import subprocess
import sys
from pathlib import Path

import torch
import triton.testing

HERE = Path(__file__).parent / "clock"
PARTS = {"": 0.0, "2 % slower": 0.02, "5 % slower": 0.05}


def load(path: Path):
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def variant(candidate: Path, share: float, comment: str) -> str:
    """The candidate with another share of repeated work; a comment makes its text one of its own."""
    return candidate.read_text().replace("EXTRA = 0.0", f"EXTRA = {share}") + f"# {comment}\n"


def verdicts(binary: str, problem: Path, folder: Path) -> list[dict]:
    """Verdicts on the candidates in a folder."""
    command = [binary, "verify", str(problem), "--batch", str(folder), "--target", "cuda:0", "--trials", "2"]
    done = subprocess.run([*command, "--jobs", "1", "--json"], capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for verdict in found:
        if verdict.get("timing") is None:
            print(json.dumps(verdict)[:1000], file=sys.stderr)
    if not found:
        print(done.stderr[-3000:], file=sys.stderr)
    return [verdict for verdict in found if verdict.get("timing")]


def other_clocks(problem: Path, candidate: Path) -> tuple[float, float]:
    """Microseconds by do_bench and by the profiler."""
    inputs = [x.cuda() for x in load(problem).get_inputs()]
    model = load(candidate).ModelNew().cuda()
    model(*inputs)
    bench = triton.testing.do_bench(lambda: model(*inputs), warmup=50, rep=200, return_mode="median") * 1e3
    flush = torch.empty(128 << 20, dtype=torch.int8, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(100):
            flush.zero_()
            model(*inputs)
        torch.cuda.synchronize()
    times = [e.device_time for e in profile.events() if e.name.endswith("_kernel") and "at::" not in e.name]
    return bench, statistics.median(times)


def variation(values: list[float]) -> float:
    """Standard deviation over the mean."""
    return statistics.stdev(values) / statistics.mean(values) if len(values) > 1 else 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--slow-runs", type=int, default=4, help="verdicts on each slower variant")
    parser.add_argument("--only", nargs="*", help="names of problems")
    parser.add_argument("--out", type=Path, default=Path("/tmp"))
    options = parser.parse_args()
    print(
        "| problem | verdicts | device us | CV | speedup against eager | CV | 95 % in the first "
        "| told apart | warm us | do_bench | profiler |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    log = (options.out / "clock.jsonl").open("w")
    for problem in sorted(p for p in HERE.glob("*.py") if not p.stem.endswith("_triton")):
        if options.only and problem.stem not in options.only:
            continue
        candidate = problem.with_name(f"{problem.stem}_triton.py")
        plain: list[dict] = []
        # All programs of a product run at once, so that more of them are not slower by their share.
        parts = PARTS if "EXTRA" in candidate.read_text() else {"": 0.0}
        for name, share in parts.items():
            folder = options.out / f"{problem.stem}_{int(share * 100)}"
            folder.mkdir(parents=True, exist_ok=True)
            for run in range(options.runs if share == 0.0 else options.slow_runs):
                path = folder / f"run{run}.py"
                path.write_text(variant(candidate, share, f"run {run}"))
            found = verdicts(options.binary, problem, folder)
            if not found:
                print(f"| {problem.stem} {name} | 0 | | | | | | | | | |")
                continue
            plain = plain or found
            bench, profiler = other_clocks(problem, path)
            times = [v["timing"]["device_us"]["value"] for v in found]
            speedups = [v["timing"]["baselines"][0]["speedup"] for v in found]
            values = [speedup["value"] for speedup in speedups]
            first = plain[0]["timing"]["baselines"][0]["speedup"]
            apart = sum(speedup["high"] < first["low"] for speedup in speedups)
            told = f"{apart} of {len(speedups)}"
            if share == 0.0:
                pairs = list(itertools.combinations(speedups, 2))
                told = f"{sum(a['high'] < b['low'] or b['high'] < a['low'] for a, b in pairs)} of {len(pairs)} pairs"
            print(
                f"| {problem.stem} {name} | {len(times)} | {statistics.median(times):.2f} | {variation(times):.2%} "
                f"| {statistics.median(values):.4f} | {variation(values):.2%} "
                f"| {speedups[0]['low']:.4f} to {speedups[0]['high']:.4f} | {told} "
                f"| {found[0]['timing']['warm_us']['value']:.2f} | {bench:.2f} | {profiler:.2f} |",
                flush=True,
            )
            log.writelines(json.dumps(v) + "\n" for v in found)
            log.flush()


if __name__ == "__main__":
    main()
