#!/usr/bin/env python3
"""Run the matrix of exactness on a GPU and on the emulator, on the same inputs, and compare.

    python3 scripts/gpu/exactness.py --emulator .gpu/launch --json OUT.json --markdown OUT.md

Needs torch and Triton with a GPU, numpy, and the emulator's example `launch`
(`cargo build --release -p tilewright-emulate --example launch`). Every case is one Triton kernel (scripts/gpu/exact),
compiled once: the GPU runs the binary, the emulator the Triton IR that it was made from. With `--no-gpu` the kernels
are only compiled and emulated, which shows what the emulator does not support.

Exit status: 0 all cases within their bound, 1 some not, 2 usage.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from exact import cases as elementwise
from exact.compare import compare
from exact.report import markdown
from exact.types import TRITON, bits_type
from exact.wholes import wholes

HEADER = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n\n"


def all_cases(only: str | None) -> list[elementwise.Case]:
    """The cases whose names match."""
    groups = (elementwise.casts, elementwise.integers, elementwise.floats, elementwise.functions)
    cases = [case for group in groups for case in group()] + list(elementwise.exact_functions()) + list(wholes())
    names = [case.name for case in cases]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})
    return [case for case in cases if only is None or re.search(only, case.name)]


class Runner:
    """What a worker process holds: the kernels' module and, with a GPU, torch."""

    def __init__(self, module: Path, emulator: Path, gpu: bool, keep: Path | None) -> None:
        self.emulator, self.gpu, self.keep = emulator, gpu, keep
        spec = importlib.util.spec_from_file_location("exactness_kernels", module)
        self.kernels = importlib.util.module_from_spec(spec)
        if not gpu:
            without_driver()
        spec.loader.exec_module(self.kernels)

    def run(self, case: elementwise.Case) -> dict:
        """The comparison of one case, or why there is none."""
        data = case.data()
        row = {"name": case.name, "group": case.group, "kind": case.kind, "operation": case.operation}
        row |= {"inputs": case.inputs, "out": case.out, "bound": case.bound, "elements": case.size or len(data[0])}
        try:
            text, on_gpu = self.on_gpu(case, data) if self.gpu else (self.lowered(case), None)
        except Exception as error:
            return row | {"status": "triton", "why": f"{type(error).__name__}: {str(error).strip()[-300:]}"}
        try:
            emulated = self.emulated(case, data, text)
        except RuntimeError as error:
            return row | {"status": "unsupported", "why": str(error)[-300:]}
        if self.gpu:
            return row | compare(case, data, on_gpu, emulated)
        return row | {"status": "emulated"}

    def grid(self, case: elementwise.Case, data: list[np.ndarray]) -> int:
        """Programs."""
        return max(case.grid, 1) if case.whole else len(data[0]) // elementwise.BLOCK

    def on_gpu(self, case: elementwise.Case, data: list[np.ndarray]) -> tuple[str, np.ndarray]:
        """The kernel's Triton IR, and what the GPU stores."""
        import torch

        tensors = [tensor(dtype, array) for dtype, array in zip(case.inputs, data, strict=True)]
        out = tensor(case.out, np.zeros(case.size or len(data[0]), bits_type(case.out)))
        compiled = getattr(self.kernels, case.name)[(self.grid(case, data),)](*tensors, out)
        torch.cuda.synchronize()
        raw = out.view(torch.uint8).cpu().numpy()
        return compiled.asm["ttir"], raw.view(bits_type(case.out))

    def lowered(self, case: elementwise.Case) -> str:
        """The kernel's Triton IR."""
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler.compiler import ASTSource, make_backend

        target = GPUTarget("cuda", 90, 32)
        backend = make_backend(target)
        options = backend.parse_options({})
        context = triton._C.libtriton.ir.context()
        triton._C.libtriton.ir.load_dialects(context)
        backend.load_dialects(context)
        names = [f"p{name}" for name in "abcd"[: len(case.inputs)]] + ["out"]
        signature = {name: f"*{dtype}" for name, dtype in zip(names, [*case.inputs, case.out], strict=True)}
        source = ASTSource(getattr(self.kernels, case.name), signature, {}, {})
        codegen, modules = backend.get_codegen_implementation(options), backend.get_module_map()
        stages = {}
        backend.add_stages(stages, options, source.language)
        return str(stages["ttir"](source.make_ir(target, options, codegen, modules, context), {}))

    def emulated(self, case: elementwise.Case, data: list[np.ndarray], text: str) -> np.ndarray:
        """What the emulator stores."""
        with tempfile.TemporaryDirectory() as folder:
            paths = [str(Path(folder) / f"{at}.bin") for at in range(len(data) + 1)]
            out = np.zeros(case.size or len(data[0]), bits_type(case.out))
            for path, array in zip(paths, [*data, out], strict=True):
                Path(path).write_bytes(array.tobytes())
            ttir = Path(folder) / "kernel.ttir"
            ttir.write_text(text)
            if self.keep:
                (self.keep / f"{case.name}.ttir").write_text(text)
            request = {
                "ttir": str(ttir), "entry": case.name, "grid": [self.grid(case, data), 1, 1], "buffers": paths,
                "args": [{"pointer": [at, 0]} for at in range(len(paths))],
            }  # fmt: skip
            (Path(folder) / "request.json").write_text(json.dumps(request))
            done = subprocess.run(
                [self.emulator, str(Path(folder) / "request.json")], capture_output=True, text=True, timeout=120
            )
            if done.returncode != 0:
                raise RuntimeError(done.stderr.strip())
            return np.frombuffer(Path(paths[-1]).read_bytes(), bits_type(case.out))


def tensor(dtype: str, array: np.ndarray):
    """A tensor on the GPU with these bits."""
    import torch

    kinds = {"fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "i1": "bool"}
    kind = getattr(torch, kinds.get(dtype, TRITON[dtype]))
    raw = torch.from_numpy(np.ascontiguousarray(array).view(np.uint8).copy()).cuda()
    return raw.view(kind)


def without_driver() -> None:
    """Let Triton believe in a GPU: nothing is launched."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    class NoDriver:
        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self) -> int:
            return 0

    driver.set_active(NoDriver())


_runner: Runner | None = None


def _start(*arguments: object) -> None:
    global _runner
    _runner = Runner(*arguments)


def _run(case_name: str) -> dict:
    return _runner.run(next(case for case in all_cases(None) if case.name == case_name))


def main() -> int:
    """Run all cases and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulator", type=Path, required=True, help="the built example `launch`")
    parser.add_argument("--json", type=Path, help="where every case goes")
    parser.add_argument("--markdown", type=Path, help="where the table goes")
    parser.add_argument("--only", help="cases whose name this regular expression finds")
    parser.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--keep", type=Path, help="keep the Triton IR in this folder")
    parser.add_argument("--no-gpu", action="store_true", help="compile and emulate only")
    arguments = parser.parse_args()
    if not arguments.emulator.is_file():
        parser.error(f"{arguments.emulator} is not a file: build the example `launch`")
    cases = all_cases(arguments.only)
    started = time.monotonic()
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "exactness_kernels.py"
        module.write_text(HEADER + "\n\n".join(case.source() for case in cases))
        start = (module, arguments.emulator.resolve(), not arguments.no_gpu, arguments.keep)
        rows = []
        with multiprocessing.get_context("spawn").Pool(arguments.jobs, _start, start) as pool:
            for row in pool.imap_unordered(_run, [case.name for case in cases], chunksize=4):
                rows.append(row)
                if row["status"] not in ("pass", "emulated"):
                    print(f"{row['status']:12} {row['name']}: {row['why']}", file=sys.stderr, flush=True)
    order = {case.name: at for at, case in enumerate(cases)}
    rows.sort(key=lambda row: order[row["name"]])
    head = describe(not arguments.no_gpu) | {"seconds": round(time.monotonic() - started)}
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": head, "cases": rows}, indent=1) + "\n")
    text = markdown(rows, head)
    if arguments.markdown:
        arguments.markdown.write_text(text)
    print(text)
    return 0 if all(row["status"] in ("pass", "emulated") or row["kind"] == "undefined" for row in rows) else 1


def describe(gpu: bool) -> dict:
    """The machine and the versions."""
    import triton

    head = {"triton": triton.__version__}
    if gpu:
        import torch

        head |= {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    return head


if __name__ == "__main__":
    sys.exit(main())
