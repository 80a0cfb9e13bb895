"""Compile handler `binary`: Triton IR text to machine code and the resources it takes.

Request: `{ttir, spec_options: LaunchOptions, target: Target, out: folder}`.
Response: `{binary, asm, shared, threads, resources, global_scratch, profile_scratch, tensordesc_meta}` or an error
document; `binary` and `asm` are files in `out`. The line of an error is a line of the given text.

The stages are Triton's own, called one after the other instead of through `triton.compile`: no cache folder is
written, and one run of ptxas gives both the code and its registers and spills.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import tempfile
from typing import Any

from tilewright.cell import triton_backend as backend_module
from tilewright.cell import ttir
from tilewright.cell.triton_backend import ir, knobs

from triton.backends.nvidia.compiler import sm_arch_from_capability  # isort: skip
from triton.compiler.compiler import IRSource, make_backend  # isort: skip

warm = ttir.warm

INPUT_NAME = "kernel.ttir"


class AssemblerError(Exception):
    """ptxas refused the code."""


def run(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """Handle one job; `scratch` is a writable folder."""
    out = os.path.abspath(request["out"])
    # The AMD linker is given temporary files, and the zygote has long chosen a folder for those.
    tempfile.tempdir = scratch
    # The path that MLIR is given ends up in the binary's line table: it must not name this job's folder.
    os.chdir(scratch)
    with open(INPUT_NAME, "w", encoding="utf-8") as file:
        file.write(request["ttir"])
    with backend_module.captured_diagnostics(".") as diagnostics:
        try:
            return compile_text(request["target"], request["spec_options"], out)
        except Exception as exception:
            failure = exception
    _, line, message = diagnostics.first_error()
    return backend_module.error("compile_error", failure, message=message, line=line)


def compile_text(target: dict[str, Any], options: dict[str, Any], out: str) -> dict[str, Any]:
    """Compile `kernel.ttir` in the current folder."""
    gpu = backend_module.gpu_target(target)
    backend = make_backend(gpu)
    parsed = backend_module.parse_options(backend, options)
    context = ir.context()
    source = IRSource(INPUT_NAME, context, backend)
    # ptxas would put the file's time into the line table, if it found the file.
    os.unlink(INPUT_NAME)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, parsed, source.language)
    codegen, module_map = backend.get_codegen_implementation(parsed), backend.get_module_map()
    module = source.make_ir(gpu, parsed, codegen, module_map, context)
    metadata: dict[str, Any] = {"num_warps": parsed.num_warps}
    suffix = "ptx" if gpu.backend == "cuda" else "amdgcn"
    for stage in ("ttgir", "llir", suffix):
        module = stages[stage](module, metadata)
    asm: str = module
    if gpu.backend == "cuda":
        binary, log = assemble(asm, gpu.arch, parsed.enable_fp_fusion)
        found = nvidia_resources(log) | {"instructions": count_instructions(binary)}
    else:
        binary = stages["hsaco"](asm, metadata)
        found = amd_resources(asm)
    binary_file = os.path.join(out, f"kernel.{backend.binary_ext}")
    asm_file = os.path.join(out, f"kernel.{suffix}")
    with open(binary_file, "wb") as file:
        file.write(binary)
    with open(asm_file, "w", encoding="utf-8") as file:
        file.write(asm)
    return {
        "binary": binary_file,
        "asm": asm_file,
        "entry": metadata["name"],
        "shared": metadata["shared"],
        # Warp specialisation adds warps of its own.
        "threads": metadata["num_warps"] * gpu.warp_size,
        "resources": found
        | {
            "shared_bytes": metadata["shared"],
            "num_warps": parsed.num_warps,
            "num_stages": parsed.num_stages,
            "num_ctas": parsed.num_ctas,
        },
        "global_scratch": [metadata.get("global_scratch_size") or 0, metadata.get("global_scratch_align") or 1],
        "profile_scratch": [metadata.get("profile_scratch_size") or 0, metadata.get("profile_scratch_align") or 1],
        "tensordesc_meta": metadata.get("tensordesc_meta") or [],
    }


def assemble(ptx: str, arch: int, fuse: bool) -> tuple[bytes, str]:
    """PTX to cubin with the arguments that Triton gives ptxas; also what it says about resources."""
    tool = knobs.nvidia.ptxas_blackwell if arch >= 100 else knobs.nvidia.ptxas
    with open("kernel.ptx", "w", encoding="utf-8") as file:
        file.write(ptx)
    flags = ["-lineinfo", *([] if fuse else ["--fmad=false"]), "-v", f"--gpu-name={sm_arch_from_capability(arch)}"]
    done = subprocess.run(
        [tool.path, *flags, "kernel.ptx", "-o", "kernel.cubin"], capture_output=True, text=True, errors="replace"
    )
    if done.returncode != 0:
        raise AssemblerError(f"ptxas failed with code {done.returncode}: {done.stderr.strip()}")
    with open("kernel.cubin", "rb") as file:
        return file.read(), done.stderr


def nvidia_resources(log: str) -> dict[str, int | None]:
    """Registers and spilled bytes of a thread from the output of `ptxas -v`."""
    registers = re.search(r"Used (\d+) registers", log)
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    return {
        "registers": int(registers[1]) if registers else None,
        "spill_bytes": int(spills[1]) + int(spills[2]) if spills else None,
    }


def amd_resources(asm: str) -> dict[str, int | None]:
    """Vector registers, spilled bytes of a thread (vector registers are 4 bytes) and instructions."""

    def figure(name: str) -> int | None:
        found = re.search(rf"\.{name}:\s+(\d+)", asm)
        return int(found[1]) if found else None

    spilled = figure("vgpr_spill_count")
    return {
        "registers": figure("vgpr_count"),
        "spill_bytes": None if spilled is None else 4 * spilled,
        "instructions": len(re.findall(r"^\t(?:v|s|ds|global|buffer|flat|scratch)_\w+", asm, re.MULTILINE)),
    }


def count_instructions(cubin: bytes) -> int:
    """Machine instructions in the `.text` sections of a cubin, without the NOPs that pad them.

    Read from the ELF file: disassembling takes a hundred times as long. An instruction has 16 bytes (sm_70 and
    later), with the opcode in its lowest 12 bits.
    """
    table, entry_size, count, names_at = (
        struct.unpack_from("<Q", cubin, 0x28)[0],
        *struct.unpack_from("<HHH", cubin, 0x3A),
    )
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + i * entry_size) for i in range(count)]
    names = headers[names_at][4]
    nop = 0x918
    total = 0
    for name, kind, _flags, _address, offset, size in headers:
        if kind == 1 and cubin.startswith(b".text.", names + name):
            words = struct.unpack_from(f"<{size // 8}Q", cubin, offset)
            total += sum(1 for word in words[::2] if word & 0xFFF != nop)
    return total
