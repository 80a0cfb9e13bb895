"""The compiled kernel that a launch or `warmup` hands back: its figures, and launching it again.

Occupancy code asks for registers and shared memory. The kernel is then compiled here, in the job's own process; what
comes out decides a grid, never what is run.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from triton.runtime import driver
from triton.runtime.jit import JITFunction

from . import binary
from .trace_record import TraceEnd
from .trace_seal import held, hold, sealed

if TYPE_CHECKING:
    from .trace import Session

_FROM_TRITON = ("metadata", "asm", "hash", "packed_metadata", "src", "metadata_group", "kernel")
_FIGURES = ("n_regs", "n_spills", "n_max_threads")


@dataclass
class Compile:
    """What Triton needs to compile one specialisation: what its `_pack_args` gives, in that order."""

    fn: JITFunction
    options: Any
    signature: dict[str, Any]
    constexprs: dict[Any, Any]
    attrs: dict[Any, Any]


class CompiledKernel:
    """Stands for `triton.compiler.CompiledKernel`. The file is given it, so it shows nothing of the tracer."""

    def __init__(self, session: Session, spec: dict[str, Any], job: Compile, record: Any) -> None:
        hold(self, _Work(session, spec, job, record))
        self.name = job.fn.__name__

    def _init_handles(self) -> None:
        """Loads the binary in Triton; there is nothing to load here."""

    def __getitem__(self, grid: Any) -> Any:
        launch = held(self).launch

        def runner(*args: Any, stream: Any = None) -> None:
            launch(grid, args)

        return sealed(runner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return held(self).answer(name)


class _Work:
    """What a compiled kernel is asked for."""

    def __init__(self, session: Session, spec: dict[str, Any], job: Compile, record: Any) -> None:
        self._session, self._spec, self._job, self._record = session, spec, job, record

    def launch(self, grid: Any, args: tuple[Any, ...]) -> None:
        rec = self._session.recorder("a compiled kernel is launched")
        self._record(rec, self._spec, list(self._job.signature.values()), list(args), grid)

    def answer(self, name: str) -> Any:
        if name in _FROM_TRITON:
            return getattr(self._compiled(), name)
        if name in _FIGURES:
            return self._figures()[name]
        rec = self._session.recorder(f"the compiled kernel's {name} is asked for")
        rec.find("compiled-kernel", "unsupported", f"the file asks for the compiled kernel's `{name}`")
        raise TraceEnd

    def _compiled(self) -> Any:
        """Triton's own compiled kernel, made once a specialisation and job."""
        cache, key = self._session.compiled, repr(self._spec)
        if key not in cache:
            job = self._job
            target = driver.active.get_current_target()
            with self._tools():
                source = job.fn.ASTSource(job.fn, job.signature, job.constexprs, job.attrs)
                cache[key] = job.fn.compile(source, target=target, options=job.options.__dict__)
        return cache[key]

    @contextlib.contextmanager
    def _tools(self) -> Iterator[None]:
        """For work that starts the assembler; a cell that may not start it cannot trace this file."""
        try:
            with self._session.audit.paused():
                yield
        except OSError as error:
            message = f"the file asks for a compiled kernel's figures, and the assembler cannot be run here: {error}"
            self._session.note("compiled-kernel", "unsupported", message)
            raise TraceEnd from error

    def _figures(self) -> dict[str, int]:
        """Registers, spilled words and the largest block, as the CUDA driver would report them."""
        compiled = self._compiled()
        if not hasattr(compiled, "tilewright_figures"):
            with self._tools():
                compiled.tilewright_figures = _figures(compiled, self._job.options)
        return compiled.tilewright_figures


def _figures(compiled: Any, options: Any) -> dict[str, int]:
    target = driver.active.get_current_target()
    if target.backend != "cuda":
        registers = binary.amd_resources(compiled.asm["amdgcn"])["registers"] or 0
        return {"n_regs": registers, "n_spills": 0, "n_max_threads": 1024}
    _, log = binary.assemble(compiled.asm["ptx"], target.arch, options.enable_fp_fusion)
    registers = binary.nvidia_resources(log)["registers"] or 0
    stack = re.search(r"(\d+) bytes stack frame", log)
    threads = 65536 // (max(registers + 7, 8) // 8 * 8) // 32 * 32
    return {
        "n_regs": registers,
        "n_spills": int(stack[1]) // 4 if stack else 0,
        "n_max_threads": min(threads, 1024),
    }
