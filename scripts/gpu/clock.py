"""How well the clock repeats, agrees with other clocks and tells slower kernels: prints Markdown.

    python3 scripts/gpu/clock.py BINARY [--runs 20] [--slow-runs 6] [--only PROBLEM ...] [--sizes] [--out DIR]

Each problem of scripts/gpu/clock is verified many times, and so are variants that do 2 % or 5 % of their work twice. Of
equal ones, all pairs are compared; each slower one is compared with each plain one. Two are told apart where their 95 %
intervals have nothing in common.

Beside that, the candidate is run here and timed by triton.testing.do_bench and by torch's profiler (the kernel's own
time, with the cache flushed before each call). What do_bench says of a kernel that does nothing is taken off, as the
executor's own cost of measuring is, but for the 0.6 us that such a kernel takes. With `--sizes`, that is done for
kernels of about 20, 50 and 200 us as well.
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
import triton
import triton.testing

HERE = Path(__file__).parent / "clock"
PARTS = {"": 0.0, "2 % slower": 0.02, "5 % slower": 0.05}
NOTHING = 0.6
"""Microseconds of a kernel that does nothing, as in `verify/timing.rs`."""
SIZES = {"20 us": 6 << 20, "50 us": 16 << 20, "200 us": 66 << 20}
"""Elements of `scale_add` that take about as long."""


@triton.jit
def nothing_kernel(x_ptr):
    """A kernel that does nothing."""
    pass


def load(path: Path):
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def variant(candidate: Path, share: float, comment: str) -> str:
    """The candidate with another share of repeated work; a comment makes its text one of its own."""
    return candidate.read_text().replace("EXTRA = 0.0", f"EXTRA = {share}") + f"# {comment}\n"


def write_variants(candidate: Path, share: float, count: int, folder: Path) -> list[Path]:
    """Files of candidates that differ in a comment."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"share{int(share * 100)}_{run}.py" for run in range(count)]
    for path in paths:
        path.write_text(variant(candidate, share, path.stem))
    return paths


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


def do_bench(call) -> float:
    """Median microseconds by do_bench."""
    return triton.testing.do_bench(call, warmup=25, rep=100, return_mode="median") * 1e3


def other_clocks(problem: Path, candidate: Path) -> tuple[float, float, float]:
    """Microseconds by do_bench, by do_bench without the cost of measuring, and by the profiler."""
    inputs = [x.cuda() for x in load(problem).get_inputs()]
    model = load(candidate).ModelNew().cuda()
    model(*inputs)
    one = torch.zeros(1, device="cuda")
    nothing_kernel[(1,)](one)
    cost = do_bench(lambda: nothing_kernel[(1,)](one)) - NOTHING
    bench = do_bench(lambda: model(*inputs))
    flush = torch.empty(128 << 20, dtype=torch.int8, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(100):
            flush.zero_()
            model(*inputs)
        torch.cuda.synchronize()
    times = [e.device_time for e in profile.events() if e.name.endswith("_kernel") and "at::" not in e.name]
    return bench, bench - cost, statistics.median(times)


def variation(values: list[float]) -> float:
    """Standard deviation over the mean."""
    return statistics.stdev(values) / statistics.mean(values) if len(values) > 1 else 0.0


def half_width(estimates: list[dict]) -> str:
    """Half of the 95 % interval as a share: the median of some."""
    return f"±{statistics.median((e['high'] - e['low']) / (2 * e['value']) for e in estimates):.2%}"


def told_apart(pairs: list[tuple[dict, dict]]) -> str:
    """How many pairs of intervals have nothing in common."""
    return f"{sum(a['high'] < b['low'] or b['high'] < a['low'] for a, b in pairs)} of {len(pairs)}"


def repeat(options: argparse.Namespace, problem: Path, log) -> None:
    """The rows of one problem."""
    candidate = problem.with_name(f"{problem.stem.removesuffix('_large')}_triton.py")
    # All programs of a product run at once, so that more of them are not slower by their share.
    parts = PARTS if "EXTRA" in candidate.read_text() else {"": 0.0}
    folder = options.out / problem.stem
    runs = {name: options.slow_runs if share else options.runs for name, share in parts.items()}
    paths = {name: write_variants(candidate, share, runs[name], folder) for name, share in parts.items()}
    everything = verdicts(options.binary, problem, folder)
    log.writelines(json.dumps(v) + "\n" for v in everything)
    log.flush()
    plain: dict[str, list[dict]] = {}
    for name in parts:
        names = {path.name for path in paths[name]}
        found = [v for v in everything if Path(v["candidate"]["path"]).name in names]
        if not found:
            print(f"| {problem.stem} {name} | 0 |")
            continue
        kinds = {"device": [v["timing"]["device_us"] for v in found]}
        if all(v["timing"]["baselines"] for v in found):
            kinds["speedup"] = [v["timing"]["baselines"][0]["speedup"] for v in found]
        cells = [f"{problem.stem} {name}", str(len(found))]
        for kind, estimates in kinds.items():
            values = [e["value"] for e in estimates]
            pairs = list(
                itertools.product(plain.get(kind, []), estimates) if name else itertools.combinations(estimates, 2)
            )
            middle = f"{statistics.median(values):.4g}"
            cells += [middle, f"{variation(values):.2%}", half_width(estimates), told_apart(pairs)]
        if not name:
            plain = kinds
        clocks = other_clocks(problem, paths[name][0])
        warm = statistics.median(v["timing"]["warm_us"]["value"] for v in found)
        print("| " + " | ".join([*cells, f"{warm:.2f}", *(f"{us:.2f}" for us in clocks)]) + " |", flush=True)


def sizes(options: argparse.Namespace) -> None:
    """The candidate `scale_add` in several sizes by all clocks."""
    print("| kernel | device us | do_bench | without its cost | against ours | profiler | against ours |")
    print("|---|---|---|---|---|---|---|")
    for name, count in SIZES.items():
        folder = options.out / f"size_{count}"
        folder.mkdir(parents=True, exist_ok=True)
        problem = options.out / f"scale_add_{count}.py"
        problem.write_text((HERE / "scale_add.py").read_text().replace("N = 8 * 1024 * 1024", f"N = {count}"))
        paths = write_variants(HERE / "scale_add_triton.py", 0.0, 3, folder)
        found = verdicts(options.binary, problem, folder)
        if not found:
            continue
        ours = statistics.median(v["timing"]["device_us"]["value"] for v in found)
        bench, net, profiler = other_clocks(problem, paths[0])
        print(
            f"| {name} | {ours:.2f} | {bench:.2f} | {net:.2f} | {net / ours - 1:+.2%} | {profiler:.2f} "
            f"| {profiler / ours - 1:+.2%} |",
            flush=True,
        )
    print()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--slow-runs", type=int, default=6, help="verdicts on each slower variant")
    parser.add_argument("--only", nargs="*", help="names of problems")
    parser.add_argument("--sizes", action="store_true", help="other clocks on kernels of 20, 50 and 200 us, too")
    parser.add_argument("--out", type=Path, default=Path("/tmp"))
    options = parser.parse_args()
    if options.sizes:
        sizes(options)
    print(
        "| problem | verdicts | device us | CV | 95 % | told apart | speedup | CV | 95 % | told apart "
        "| warm us | do_bench | without its cost | profiler |"
    )
    print("|" + "---|" * 14)
    with (options.out / "clock.jsonl").open("w") as log:
        for problem in sorted(p for p in HERE.glob("*.py") if not p.stem.endswith("_triton")):
            if not options.only or problem.stem in options.only:
                repeat(options, problem, log)


if __name__ == "__main__":
    main()
