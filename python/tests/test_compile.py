"""The compile handlers, against Triton's own compiler and NVIDIA's own tools."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import call
from tilewright.cell import binary, triton_backend, ttir

SOURCE = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice

SLOPE = tl.constexpr(0.25)


@triton.jit
def leaky(x, slope: tl.constexpr):
    return tl.where(x > 0, x, x * slope)


@triton.jit
def rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr, act: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = act(tl.load(x_ptr + offsets, mask=mask), SLOPE)
    tl.store(y_ptr + offsets, libdevice.tanh(x - tl.max(x, axis=0)), mask=mask)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    per_row = tl.cdiv(N, BN)
    rm = (tl.program_id(0) // per_row) * BM + tl.arange(0, BM)
    rn = (tl.program_id(0) % per_row) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def kinds(pair, out_ptr, nothing: tl.constexpr, mode: tl.constexpr, dtype: tl.constexpr, sizes: tl.constexpr):
    offsets = tl.arange(0, sizes[0] * sizes[1])
    value = tl.load(pair[0] + offsets) * pair[1]
    if nothing is None and mode == "double":
        value = value * 2
    tl.store(out_ptr + offsets, value.to(dtype))


@triton.jit
def fails_in_helper(x_ptr, n):
    tl.store(x_ptr, broken(n))


@triton.jit
def broken(n):
    tl.static_assert(False, "never")
    return n


@triton.jit
def undefined(x_ptr):
    tl.store(
        x_ptr,
        missing_name,
    )
"""


def line_of(text: str) -> int:
    """The 1-based line of the source that holds a text."""
    return next(number for number, line in enumerate(SOURCE.splitlines(), 1) if text in line)


CUDA = [{"backend": "cuda", "arch": arch, "warp_size": 32} for arch in ("80", "90", "100", "120")]
HIP = {"backend": "hip", "arch": "gfx942", "warp_size": 64}
ALIGNED = [["tt.divisibility", 16]]


def options(**changes: Any) -> dict[str, Any]:
    plain = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "enable_fp_fusion": True}
    return plain | {"launch_cooperative_grid": False, "launch_pdl": False} | changes


def spec(function: str, params: dict[str, str], constexprs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "function": function,
        "params": [{"name": name, "ty": ty} for name, ty in params.items()],
        "constexprs": constexprs,
        "attrs": {"0": ALIGNED, "1": ALIGNED},
        "options": options(**changes),
    }


def number(value: Any) -> dict[str, Any]:
    return {"kind": "number", "value": value}


ROWS = spec(
    "rows",
    {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr", "act": "constexpr"},
    {"3": number(512), "4": {"kind": "function", "value": "leaky"}},
)


def matmul(tile: int, **changes: Any) -> dict[str, Any]:
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
    types |= {"BM": "constexpr", "BN": "constexpr", "BK": "constexpr"}
    return spec("matmul", types, {"6": number(tile), "7": number(tile), "8": number(32)}, **changes)


def to_ttir(kernel: dict[str, Any], target: dict[str, Any] = CUDA[1], source: str = SOURCE) -> dict[str, Any]:
    return call(ttir.run, {"module": source, "spec": kernel, "target": target})


def to_binary(text: str, kernel: dict[str, Any], target: dict[str, Any], out: Path) -> dict[str, Any]:
    request = {"ttir": text, "spec_options": kernel["options"], "target": target, "out": str(out)}
    return call(binary.run, request)


def test_ttir_has_the_candidates_lines_and_no_path_of_this_machine() -> None:
    answer = to_ttir(ROWS)
    assert answer["entry"] == "rows"
    assert 'loc("candidate.py":15:' in answer["ttir"]  # offsets = …
    assert 'loc("candidate.py":10:' in answer["ttir"]  # the inlined helper
    files = set(re.findall(r'loc\("([^"]+)":\d', answer["ttir"]))
    assert files == {"candidate.py", "triton/language/standard.py"}
    assert to_ttir(ROWS) == answer


def test_every_kind_of_constexpr_and_a_tuple_argument() -> None:
    params = {"pair.0": "*fp32", "pair.1": "fp32", "out_ptr": "*bf16"}
    params |= {"nothing": "constexpr", "mode": "constexpr", "dtype": "constexpr", "sizes": "constexpr"}
    kernel = spec(
        "kinds",
        params,
        {
            "2": {"kind": "none"},
            "3": {"kind": "str", "value": "double"},
            "4": {"kind": "dtype", "value": "bf16"},
            "5": {"kind": "tuple", "items": [number(8), number(16)]},
        },
    ) | {"attrs": {"0.0": ALIGNED}}
    answer = to_ttir(kernel)
    text = answer["ttir"]
    assert "tensor<128xbf16>" in text
    assert "dense<2.000000e+00>" in text
    assert text.count("tt.divisibility") == 1
    assert re.search(r"@kinds\(%[\w.]+: !tt.ptr<f32> \{tt.divisibility.*?f32.*?!tt.ptr<bf16>", text)


@pytest.mark.parametrize(
    ("kernel", "line", "message"),
    [
        (spec("fails_in_helper", {"x_ptr": "*i32", "n": "i32"}, {}), line_of("static_assert"), "never"),
        (
            spec("undefined", {"x_ptr": "*fp32"}, {}) | {"attrs": {}},
            line_of("missing_name"),
            "missing_name is not defined",
        ),
        (ROWS | {"function": "absent"}, None, "absent"),
        (ROWS | {"function": "SLOPE"}, None, "not a Triton kernel"),
        (ROWS | {"options": options(ir_override="x.ttir")}, None, "ir_override"),
        (ROWS | {"options": options(num_warps=3)}, None, "power of 2"),
    ],
)
def test_errors_are_compile_errors_with_the_candidates_line(kernel: Any, line: int | None, message: str) -> None:
    error = to_ttir(kernel)["error"]
    assert error["kind"] == "compile_error"
    assert message in error["message"]
    assert error["line"] == line


@pytest.mark.parametrize(
    ("source", "line", "kind"),
    [("\n\ndef f(:\n", 3, "SyntaxError"), ("\nX = 1 / 0\n", 2, "ZeroDivisionError"), ("\n\0", None, "SyntaxError")],
)
def test_a_module_that_does_not_load_is_a_compile_error(source: str, line: int | None, kind: str) -> None:
    error = to_ttir(ROWS, source=source)["error"]
    assert (error["kind"], error["type"]) == ("compile_error", kind) or source == "\n\0"
    assert error["kind"] == "compile_error"
    assert error["line"] == line


@pytest.mark.parametrize("kernel", [ROWS, matmul(64), matmul(32, enable_fp_fusion=False, num_warps=8, maxnreg=96)])
@pytest.mark.parametrize("target", CUDA, ids=lambda target: f"sm_{target['arch']}")
def test_the_binary_is_the_one_that_triton_makes(kernel: Any, target: Any, tmp_path: Path) -> None:
    text = to_ttir(kernel, target)["ttir"]
    ours = to_binary(text, kernel, target, tmp_path)
    theirs = call(_triton_compile, {"ttir": text, "options": kernel["options"], "target": target})
    assert Path(ours["binary"]).read_bytes().hex() == theirs["cubin"]
    assert Path(ours["asm"]).read_text() == theirs["ptx"]
    assert ours["shared"] == theirs["shared"] == ours["resources"]["shared_bytes"]
    assert ours["entry"] == theirs["name"]
    assert ours["threads"] == 32 * kernel["options"]["num_warps"]


def _triton_compile(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    import os

    import triton

    os.environ["TRITON_CACHE_DIR"] = scratch
    os.chdir(scratch)
    Path("kernel.ttir").write_text(request["ttir"])
    # Read by then. Its time must not get into the binary.
    triton.knobs.runtime.add_stages_inspection_hook = lambda *_: os.unlink("kernel.ttir")
    chosen = {name: value for name, value in request["options"].items() if value is not None}
    kernel = triton.compile("kernel.ttir", target=triton_backend.gpu_target(request["target"]), options=chosen)
    metadata = kernel.metadata
    return {
        "cubin": kernel.asm["cubin"].hex(),
        "ptx": kernel.asm["ptx"],
        "shared": metadata.shared,
        "name": metadata.name,
    }


def _tool(name: str, *arguments: str) -> str:
    import triton

    path = Path(triton.__file__).parent / "backends/nvidia/bin" / name
    return subprocess.run([path, *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("target", CUDA[:3], ids=lambda target: f"sm_{target['arch']}")
def test_resources_are_what_nvidias_tools_say(target: Any, tmp_path: Path) -> None:
    kernel = matmul(128)
    found = to_binary(to_ttir(kernel, target)["ttir"], kernel, target, tmp_path)
    usage = _tool("cuobjdump", "--dump-resource-usage", found["binary"])
    assert f"REG:{found['resources']['registers']} " in usage
    listing = _tool("nvdisasm", "-c", found["binary"])
    instructions = [line for line in listing.splitlines() if re.match(r"\s+/\*[0-9a-f]{4,}\*/", line)]
    real = [line for line in instructions if not re.search(r"\bNOP\b", line)]
    assert found["resources"]["instructions"] == len(real)
    spilled = any(re.search(r"\bSTL\b", line) for line in real)
    assert (found["resources"]["spill_bytes"] > 0) == spilled


def test_locations_do_not_change_the_code(tmp_path: Path) -> None:
    text = to_ttir(ROWS)["ttir"]
    bare = "\n".join(line for line in text.splitlines() if not line.startswith("#loc"))
    bare = re.sub(r' loc\((?:[^()"]|"[^"]*"|\((?:[^()"]|"[^"]*")*\))*\)', "", bare)
    assert "loc(" not in bare
    listings = []
    for number_, source in enumerate((text, bare)):
        out = tmp_path / str(number_)
        out.mkdir()
        listings.append(_tool("nvdisasm", "-c", "-hex", to_binary(source, ROWS, CUDA[1], out)["binary"]))
    code = [re.findall(r"/\* (0x[0-9a-f]{16}) \*/", listing) for listing in listings]
    assert code[0] == code[1]
    assert len(code[0]) > 100


def test_amd_is_compiled_too(tmp_path: Path) -> None:
    found = to_binary(to_ttir(matmul(64), HIP)["ttir"], matmul(64), HIP, tmp_path)
    assert Path(found["binary"]).read_bytes()[:4] == b"\x7fELF"
    assert found["threads"] == 256
    assert found["resources"]["registers"] > 0
    assert found["resources"]["spill_bytes"] == 0
    assert found["resources"]["instructions"] > 100


def test_a_descriptor_argument_reports_its_tensor_map(tmp_path: Path) -> None:
    source = """\
import triton
import triton.language as tl


@triton.jit
def copy(src, dst_ptr, BLOCK: tl.constexpr):
    tile = src.load([tl.program_id(0) * BLOCK, 0])
    offsets = tl.arange(0, BLOCK)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(dst_ptr + offsets, tile)
"""
    params = {"src": "tensordesc<fp16[32, 64]>", "dst_ptr": "*fp16", "BLOCK": "constexpr"}
    kernel = spec("copy", params, {"2": number(32)}) | {"attrs": {}}
    answer = to_ttir(kernel, source=source)
    found = to_binary(answer["ttir"], kernel, CUDA[1], tmp_path)
    assert len(found["tensordesc_meta"]) == 1
    assert found["tensordesc_meta"][0]["block_size"] == [32, 64]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", None),
        ("not IR at all", 1),
        (
            "module {\n  tt.func public @k(%a: !tt.ptr<f32>) {\n    %0 = tt.nonsense %a : f32\n    tt.return\n  }\n}\n",
            3,
        ),
        ("module {\n  tt.func public @k() {\n    %0 = arith.constant 1 : i32\n    tt.return %0 : i32\n  }\n}\n", 4),
        ("module {\n}\n", None),
    ],
)
def test_malformed_ir_is_an_error_or_a_dead_child(text: str, line: int | None, tmp_path: Path) -> None:
    found = to_binary(text, ROWS, CUDA[1], tmp_path)
    if "died" not in found:
        assert found["error"]["kind"] == "compile_error"
        assert found["error"]["line"] == line or line is None


def test_what_ptxas_refuses_is_a_compile_error(tmp_path: Path) -> None:
    source = """\
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr)
    x = tl.inline_asm_elementwise("bogus.instruction $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x_ptr, x)
"""
    kernel = spec("kernel", {"x_ptr": "*i32"}, {}) | {"attrs": {}}
    found = to_binary(to_ttir(kernel, source=source)["ttir"], kernel, CUDA[1], tmp_path)
    assert found["error"]["kind"] == "compile_error"
    assert found["error"]["type"] == "AssemblerError"
    assert "bogus" in found["error"]["message"]
