#!/usr/bin/env python3
"""Time the emulator against Triton's own interpreter, on the same kernels and data, in one run.

    scripts/bench_emulate.py [--emulator PATH] [--repeat N] [--json] [KERNEL ...]

The kernels are those of crates/emulate/tests/fixtures: kernels.py for the interpreter, speed_*.ttir for the emulator.
The interpreter runs stock, in a process of its own with TRITON_INTERPRET=1; the emulator is the example `launch`
(`cargo build --release -p tilewright-emulate --example launch`). Both must give the same result, within 1e-5 of its
largest magnitude, or 1e-3 where the IR multiplies in tf32, which the interpreter does not. Times are the least of N
launches (of one in the interpreter, where that takes more than a second): wall clock, and processor time in brackets,
which other work on the machine disturbs less.

Exit status 1 if results differ, 2 if the emulator is not built.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "crates/emulate/tests/fixtures"


@dataclass(frozen=True)
class Kernel:
    """A kernel with its launch: shapes of its tensors in order (the last one is the output), then its integers."""

    name: str
    shapes: list[tuple[int, ...]]
    ints: list[int]
    grid: tuple[int, int, int]
    blocks: dict[str, int | str] = field(default_factory=dict)
    what: str = ""
    tolerance: float = 1e-5


KERNELS = [
    Kernel("add", [(2**20,)] * 3, [2**20], (1024, 1, 1), {"BLOCK": 1024}, "2^20 elements, block 1,024"),
    Kernel("softmax", [(4096, 1024)] * 2, [1024], (4096, 1, 1), {"BLOCK": 1024}, "4,096 x 1,024"),
    Kernel(
        "matmul",
        [(1024, 1024)] * 3,
        [1024] * 3,
        (256, 1, 1),
        {"BM": 64, "BN": 64, "BK": 32, "PRECISION": "ieee"},
        "1,024^3, tiles 64 x 64 x 32",
        1e-3,
    ),
    Kernel(
        "conv",
        [(8, 16, 32, 32), (32, 16, 3, 3), (8, 32, 32, 32)],
        [8, 16, 32, 32, 32],
        (128, 1, 1),
        {"BM": 64, "BN": 32, "BK": 32},
        "8 x 16 x 32 x 32 by 32 x 3 x 3",
        1e-3,
    ),
]


def interpret(folder: Path, name: str, repeat: int) -> None:
    """Run one kernel in the interpreter on the tensors of a folder: this process has TRITON_INTERPRET set."""
    import torch

    spec = importlib.util.spec_from_file_location("kernels", FIXTURES / "kernels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernels"] = module
    spec.loader.exec_module(module)
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    tensors = [
        torch.frombuffer(bytearray((folder / str(at)).read_bytes()), dtype=torch.float32).reshape(shape)
        for at, shape in enumerate(kernel.shapes)
    ]
    times: list[tuple[float, float]] = []
    while len(times) < repeat and sum(wall for wall, _ in times) < max(1.0, 0.01 * repeat):
        wall, processor = time.perf_counter(), time.process_time()
        getattr(module, name)[kernel.grid](*tensors, *kernel.ints, **kernel.blocks)
        times.append((time.perf_counter() - wall, time.process_time() - processor))
    (folder / "interpreted").write_bytes(tensors[-1].numpy().tobytes())
    print(json.dumps([min(column) for column in zip(*times, strict=True)]))


def interpreter(folder: Path, kernel: Kernel, repeat: int) -> list[float]:
    """Wall and processor seconds of a launch in the interpreter."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, __file__, "--interpret", str(folder), "--repeat", str(repeat), kernel.name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the interpreter failed on {kernel.name}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def emulator(binary: Path, folder: Path, kernel: Kernel, repeat: int, limits: dict) -> list[float]:
    """Wall and processor seconds of a launch in the emulator."""
    buffers = [str(folder / str(at)) for at in range(len(kernel.shapes))]
    args = [{"pointer": [at, 0]} for at in range(len(buffers))] + [{"int": value} for value in kernel.ints]
    request = {"ttir": str(FIXTURES / f"speed_{kernel.name}.ttir"), "entry": kernel.name, "grid": kernel.grid}
    request |= {"buffers": buffers, "args": args, "repeat": repeat, **limits}
    path = folder / "request.json"
    path.write_text(json.dumps(request))
    done = subprocess.run([str(binary), str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the emulator failed on {kernel.name}:\n{done.stderr}")
    launches = json.loads(done.stdout)
    return [min(column) for column in zip(*launches, strict=True)]


def measure(binary: Path, kernel: Kernel, repeat: int) -> dict:
    """All times of one kernel, and how far the two results lie apart."""
    import torch

    generator = torch.Generator().manual_seed(7)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for at, shape in enumerate(kernel.shapes):
            last = at == len(kernel.shapes) - 1
            tensor = torch.zeros(shape) if last else torch.randn(shape, generator=generator)
            (folder / str(at)).write_bytes(tensor.numpy().tobytes())
        row = {"kernel": kernel.name, "what": kernel.what, "load_before": os.getloadavg()[0]}
        row["interpreter"] = interpreter(folder, kernel, repeat)
        row["emulator"] = emulator(binary, folder, kernel, repeat, {})
        row["one_thread"] = emulator(binary, folder, kernel, repeat, {"threads": 1})
        row["one_thread_bare"] = emulator(binary, folder, kernel, repeat, {"threads": 1, "bare": True})
        # On all threads, too: the ratio of the two is what the sanitiser costs.
        row["bare"] = emulator(binary, folder, kernel, repeat, {"bare": True})
        row["load_after"] = os.getloadavg()[0]
        files = [folder / "interpreted", folder / str(len(kernel.shapes) - 1)]
        want, got = (torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.float32) for file in files)
        row["error"] = float((want - got).abs().max() / want.abs().max())
        row["equal"] = row["error"] < kernel.tolerance
    wall, processor = zip(row["interpreter"], row["emulator"], strict=True)
    row["ratio"] = wall[0] / wall[1]
    row["ratio_processor"] = processor[0] / row["one_thread"][1]
    row["overhead"] = row["emulator"][0] / row["bare"][0]
    row["overhead_processor"] = row["one_thread"][1] / row["one_thread_bare"][1]
    return row


def table(rows: list[dict]) -> str:
    """The measurements as Markdown."""

    def seconds(times: list[float], unit: float = 1.0) -> str:
        return f"{times[0] * unit:.1f} ({times[1] * unit:.1f})"

    lines = [
        "| kernel | interpreter, s | emulator, ms | ratio | one thread, ms | its ratio by processor time "
        "| sanitiser against bounds alone | load | difference |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['kernel']}, {row['what']} | {seconds(row['interpreter'])} | {seconds(row['emulator'], 1e3)} "
            f"| {row['ratio']:.0f} | {seconds(row['one_thread'], 1e3)} | {row['ratio_processor']:.0f} "
            f"| {row['overhead']:.2f} ({row['overhead_processor']:.2f}) "
            f"| {row['load_before']:.1f} to {row['load_after']:.1f} | {row['error']:.0e} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="add, softmax, matmul, conv; all if none is named")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--emulator", type=Path, default=target / "release/examples/launch", help="the built example")
    parser.add_argument("--repeat", type=int, default=20, help="launches, the least of which counts")
    parser.add_argument("--json", action="store_true", help="all figures, seconds as [wall, processor]")
    parser.add_argument("--interpret", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.kernels) - {kernel.name for kernel in KERNELS}
    if unknown:
        parser.error(f"no such kernel: {', '.join(sorted(unknown))}")
    if options.interpret:
        interpret(options.interpret, options.kernels[0], options.repeat)
        return 0
    if not options.emulator.is_file():
        print(
            f"{options.emulator} is missing: cargo build --release -p tilewright-emulate --example launch",
            file=sys.stderr,
        )
        return 2
    rows = []
    for kernel in KERNELS:
        if not options.kernels or kernel.name in options.kernels:
            print(f"{kernel.name} …", file=sys.stderr)
            rows.append(measure(options.emulator, kernel, options.repeat))
    print(json.dumps(rows, indent=1) if options.json else table(rows))
    wrong = [row["kernel"] for row in rows if not row["equal"]]
    if wrong:
        print(f"results differ: {', '.join(wrong)}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
