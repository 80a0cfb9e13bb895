"""What a forked child does: keep only its own descriptors, confine itself, read the request, answer, leave.

Everything up to `handler.run` is trusted code. The request arrives only after the confinement is in force, and
only here: the zygote never sees it.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from tilewright import _core
from tilewright.cell import channel

JOB_FD = 3
GIVEN_FD = 4
"""A descriptor that the Rust side gave the job, where it gave one."""
OUT_OF_MEMORY_STATUS = 86
"""Exit status that tells the Rust side that Python ran into the memory limit. crates/cell knows the same number."""

Handler = Callable[[dict[str, Any], str], dict[str, Any]]


def main(job: dict[str, Any], handler: Handler, job_fd: int, output_fd: int, *given: int) -> NoReturn:
    """Run one job in this freshly forked process and end it."""
    status = 1
    try:
        keep_only(job_fd, output_fd, *given)
        status = run(job, handler)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def run(job: dict[str, Any], handler: Handler) -> int:
    """Confine this process, read the request, call the handler and send what it returns. Returns the exit status."""
    confinement = job["confinement"]
    scratch = confinement["scratch"]
    if not confinement["trusted"]:
        scrub_environment(scratch)
    try:
        confined = json.loads(_core.confine(json.dumps(confinement)))
    except _core.ConfineError as error:
        channel.send_frame(JOB_FD, {"refused": str(error)})
        return 1
    scratch_fd = confined.pop("scratch_fd", None)
    channel.send_frame(JOB_FD, {"confined": confined}, () if scratch_fd is None else (scratch_fd,))
    if scratch_fd is not None:
        os.close(scratch_fd)

    envelope = channel.receive_frame(JOB_FD)
    gc.enable()
    if confinement["trusted"]:
        os.environ.clear()
        os.environ.update(envelope["environment"])
        os.chdir(envelope["folder"])
    else:
        os.chdir(scratch)
    try:
        response = handler(envelope["request"], scratch)
    except MemoryError:
        return OUT_OF_MEMORY_STATUS
    except BaseException as error:
        response = {"error": internal_error(error)}
    sys.stdout.flush()
    sys.stderr.flush()
    channel.send_frame(JOB_FD, response)
    return 0


def keep_only(job_fd: int, output_fd: int, *given: int) -> None:
    """Keep the job socket (as JOB_FD), the output pipe (as stdout and stderr) and what the Rust side gave the job (as
    GIVEN_FD); close all other descriptors."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Descriptors above the ones to fill, so that no dup2 below overwrites a source.
    job_fd, output_fd, *given = (_above(fd, 16) for fd in (job_fd, output_fd, *given))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    kept = [job_fd, *given]
    for fd, place in zip(kept, (JOB_FD, GIVEN_FD), strict=False):
        os.dup2(fd, place, inheritable=False)
    os.closerange(JOB_FD + len(kept), os.sysconf("SC_OPEN_MAX"))


def _above(fd: int, minimum: int) -> int:
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, minimum)


def scrub_environment(scratch: str) -> None:
    """Leave a hostile child an environment that says nothing about its user and points every cache at its scratch."""
    os.environ.clear()
    os.environ.update(
        PATH="/usr/bin:/bin",
        LANG="C.UTF-8",
        HOME=scratch,
        TMPDIR=scratch,
        TRITON_HOME=scratch,
        TRITON_CACHE_DIR=os.path.join(scratch, "triton"),
        TORCHINDUCTOR_CACHE_DIR=os.path.join(scratch, "inductor"),
        OMP_NUM_THREADS="1",
        MLIR_DISABLE_MULTITHREADING="1",
    )
    # The zygote has long chosen a folder, which is out of reach here.
    tempfile.tempdir = scratch


def internal_error(error: BaseException) -> dict[str, Any]:
    """An exception that a handler let through: a fault of ours, not of the candidate."""
    return {
        "kind": "internal",
        "type": type(error).__name__,
        "message": str(error),
        "line": None,
        "traceback": "".join(traceback.format_exception(error)[-12:]),
    }
