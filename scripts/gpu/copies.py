"""Our own copy, cast and fill kernels beside torch's on this machine's GPU: results and device time; prints Markdown.

    python3 scripts/gpu/copies.py BINARY [--size MEBIBYTES] [--json FILE]

Each case copies one view into another. `BINARY executor --copies` says how the executor would do it; the same kernel
with the same arguments is compiled and run here, and must leave the bytes that torch's `copy_` leaves. Both are
recorded as graphs and timed by events with a cold second-level cache, in turns. Exit status 1 where a result differs.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

STEPS = Path(__file__).parents[2] / "crates/replay/src/steps.py"
CALLS = 40
BLOCKS = 4
"""Series of CALLS by each side, in turns."""

View = Callable[[Callable[..., torch.Tensor], int], torch.Tensor]
"""Makes a view of a tensor of about `n` elements by `new(shape)`."""


def square(n: int) -> int:
    """The side of a square of `n` elements, a multiple of 64."""
    return max(64, int(n**0.5) // 64 * 64)


def nchw(new: Callable[..., torch.Tensor], n: int, channels: int = 64) -> torch.Tensor:
    """A batch of images."""
    return new(max(1, n // (channels * 56 * 56)), channels, 56, 56)


F32, F16, BF16, F64, I32, I64, U8, BOOL = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
)

CASES: list[tuple[str, torch.dtype, torch.dtype, View]] = [
    ("contiguous", F32, F32, lambda new, n: new(n)),
    ("contiguous", F16, F16, lambda new, n: new(n)),
    ("contiguous", U8, U8, lambda new, n: new(n)),
    ("contiguous", F64, F64, lambda new, n: new(n)),
    ("contiguous, odd length", F16, F16, lambda new, n: new(n - 3)),
    ("transposed", F32, F32, lambda new, n: new(square(n), square(n)).t()),
    ("transposed", F16, F16, lambda new, n: new(square(n), square(n)).t()),
    ("transposed", U8, U8, lambda new, n: new(square(n), square(n)).t()),
    ("transposed, odd sides", F32, F32, lambda new, n: new(square(n) + 1, square(n) - 3).t()),
    ("transposed, tall", F32, F32, lambda new, n: new(n // 24, 24).t()),
    ("batched transpose", F16, F16, lambda new, n: new(n // 4096, 64, 64).transpose(1, 2)),
    ("heads", F16, F16, lambda new, n: new(8, n // 8192, 16, 64).permute(0, 2, 1, 3)),
    ("NCHW to NHWC", F32, F32, lambda new, n: nchw(new, n).permute(0, 2, 3, 1)),
    ("NCHW to NHWC, 3 channels", F32, F32, lambda new, n: nchw(new, n, 3).permute(0, 2, 3, 1)),
    ("NHWC to NCHW", F16, F16, lambda new, n: new(max(1, n // (64 * 3136)), 56, 56, 64).permute(0, 3, 1, 2)),
    ("reversed axes of 5", F32, F32, lambda new, n: new(n // 20160, 7, 9, 10, 32).permute(4, 3, 2, 1, 0)),
    ("short axes", F32, F32, lambda new, n: new(n // 945, 3, 5, 7, 9).permute(0, 4, 2, 3, 1)),
    ("columns left out", F32, F32, lambda new, n: new(n // 1024, 1024)[:, 1:]),
    ("half of the columns", F16, F16, lambda new, n: new(n // 1024, 2048)[:, :1024]),
    ("every other column", F32, F32, lambda new, n: new(n // 512, 1024)[:, ::2]),
    ("every other row", F32, F32, lambda new, n: new(n // 512, 1024)[::2]),
    ("row repeated", F32, F32, lambda new, n: new(1, 1024).expand(n // 1024, 1024)),
    ("column repeated", F32, F32, lambda new, n: new(n // 1024, 1).expand(n // 1024, 1024)),
    ("one element", F64, F64, lambda new, n: new(1).expand(n)),
    ("one element, rows with gaps", F32, F32, lambda new, n: new(1, 1).expand(n // 1024, 1000)),
    ("cast", F32, F16, lambda new, n: new(n)),
    ("cast", F32, BF16, lambda new, n: new(n)),
    ("cast", BF16, F32, lambda new, n: new(n)),
    ("cast", F16, F32, lambda new, n: new(n)),
    ("cast", F64, F32, lambda new, n: new(n)),
    ("cast", I64, I32, lambda new, n: new(n)),
    ("cast", I32, F32, lambda new, n: new(n)),
    ("cast", BOOL, F32, lambda new, n: new(n)),
    ("cast, transposed", F32, F16, lambda new, n: new(square(n), square(n)).t()),
    ("cast, NCHW to NHWC", BF16, F32, lambda new, n: nchw(new, n).permute(0, 2, 3, 1)),
]


def fresh(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Random contents on the device."""
    if dtype == torch.bool:
        return torch.rand(shape, device="cuda") < 0.5
    if not dtype.is_floating_point:
        return torch.randint(0, 100, shape, device="cuda").to(dtype)
    return torch.randn(shape, dtype=torch.float32, device="cuda").to(dtype)


def destination(name: str, src: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Where a case copies to."""
    if "rows with gaps" in name:
        return torch.empty(src.shape[0], src.shape[1] + 24, dtype=dtype, device="cuda")[:, : src.shape[1]]
    return torch.empty(src.shape, dtype=dtype, device="cuda")


def view_of(tensor: torch.Tensor) -> dict[str, Any]:
    """A view as documents have it."""
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "strides": list(tensor.stride()),
        "offset": tensor.storage_offset() * tensor.element_size(),
    }


def lowered(binary: str, src: torch.Tensor, dst: torch.Tensor) -> list[dict[str, Any]]:
    """The launches that the executor would make."""
    text = json.dumps([view_of(src), view_of(dst)]) + "\n"
    done = subprocess.run([binary, "executor", "--copies"], input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@functools.cache
def steps() -> Any:
    """The module of our kernels."""
    spec = importlib.util.spec_from_file_location("steps", STEPS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def compiled(spec: str) -> Any:
    """One specialisation, compiled as the compile stage does it."""
    kernel = json.loads(spec)
    source = ASTSource(
        fn=getattr(steps(), kernel["function"]),
        signature={param["name"]: param["ty"] for param in kernel["params"]},
        constexprs={(int(at),): value["value"] for at, value in kernel["constexprs"].items()},
        attrs={(int(at),): [list(pair) for pair in pairs] for at, pairs in kernel["attrs"].items()},
    )
    capability = torch.cuda.get_device_capability()
    target = GPUTarget("cuda", capability[0] * 10 + capability[1], 32)
    return triton.compile(source, target=target, options={"num_warps": kernel["options"]["num_warps"]})


def ours(launches: list[dict[str, Any]], src: torch.Tensor, dst: torch.Tensor) -> Callable[[], None]:
    """A call of the kernels of a copy."""
    calls = []
    for launch in launches:
        kernel = compiled(json.dumps(launch["spec"], sort_keys=True))
        constants = {int(at): value["value"] for at, value in launch["spec"]["constexprs"].items()}
        values = iter([
            src.untyped_storage().data_ptr() + launch["src"],
            dst.untyped_storage().data_ptr() + launch["dst"],
            *launch["values"],
        ])  # fmt: skip
        args = [constants[at] if at in constants else next(values) for at in range(len(launch["spec"]["params"]))]
        calls.append((kernel[(launch["programs"], 1, 1)], args))

    def call() -> None:
        for run, args in calls:
            run(*args)

    return call


def recorded(call: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """A call as a graph."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def times(graph: torch.cuda.CUDAGraph, flush: torch.Tensor) -> list[float]:
    """Microseconds of some replays with a cold cache."""
    events = []
    for number in range(CALLS):
        flush.fill_(number)
    for number in range(CALLS):
        flush.fill_(number)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        events.append((start, end))
    torch.cuda.synchronize()
    return [start.elapsed_time(end) * 1e3 for start, end in events]


def measure(binary: str, case: tuple, elements: int, flush: torch.Tensor, overhead: float) -> dict[str, Any]:
    """One row."""
    name, src_dtype, dst_dtype, make = case
    n = elements // max(src_dtype.itemsize, dst_dtype.itemsize)
    src = make(lambda *shape: fresh(src_dtype, *shape), n)
    got = destination(name, src, dst_dtype)
    wanted = destination(name, src, dst_dtype)
    launches = lowered(binary, src, got)
    sides = {"ours": recorded(ours(launches, src, got)), "torch": recorded(lambda: wanted.copy_(src))}
    found: dict[str, list[float]] = {"ours": [], "torch": []}
    for _ in range(BLOCKS):
        for side, graph in sides.items():
            found[side] += times(graph, flush)
    us = {side: statistics.median(values) - overhead for side, values in found.items()}
    moved = src.untyped_storage().nbytes() if 0 in src.stride() else src.numel() * src.element_size()
    return {
        "name": name,
        "dtypes": f"{str(src_dtype)[6:]} to {str(dst_dtype)[6:]}",
        "shape": list(src.shape),
        "kernel": launches[0]["spec"]["function"] + (f" x {len(launches)}" if len(launches) > 1 else ""),
        "same": bool(torch.equal(got, wanted)),
        "ours_us": us["ours"],
        "torch_us": us["torch"],
        "ratio": us["ours"] / us["torch"],
        "gigabytes_per_second": (moved + got.numel() * got.element_size()) / us["ours"] / 1e3,
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--size", type=int, nargs="+", default=[2, 256], help="MiB of the larger side")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    flush = torch.empty(2 * torch.cuda.get_device_properties(0).L2_cache_size // 4, dtype=torch.int32, device="cuda")
    one = torch.zeros(1, device="cuda")
    overhead = statistics.median(times(recorded(lambda: one.fill_(1.0)), flush)) - 0.6
    rows = []
    print(f"Overhead of events: {overhead:.2f} us, taken off.\n")
    print("| MiB | copy | dtypes | kernel | same bits | ours, us | torch, us | ours / torch | GB/s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for size in options.size:
        for case in CASES:
            try:
                row = measure(options.binary, case, size << 20, flush, overhead)
            except Exception as error:  # the other cases still tell something
                output = getattr(error, "stderr", "")
                print(f"| {size} | {case[0]} | {case[1]} | FAILED {type(error).__name__}: {error} {output} |"[:600])
                rows.append({"name": case[0], "same": False})
                continue
            rows.append({"mebibytes": size, **row})
            print(
                f"| {size} | {row['name']} | {row['dtypes']} | {row['kernel']} | {'yes' if row['same'] else 'NO'} "
                f"| {row['ours_us']:.2f} | {row['torch_us']:.2f} | {row['ratio']:.3f} "
                f"| {row['gigabytes_per_second']:.0f} |",
                flush=True,
            )
    slow = [row for row in rows if row.get("ratio", 0) > 1.1]
    print(f"\n{len(rows)} copies, {len(slow)} slower than torch by more than 10 %.")
    if options.json:
        options.json.write_text(json.dumps(rows))
    return 0 if all(row["same"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
