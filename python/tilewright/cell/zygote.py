"""The zygote: imports torch and Triton once, then forks one child for every job.

It runs no job itself, holds no request, no data and no secret, and has exactly one thread: it forks, hands
each child's pidfd to the Rust side, and reports exits. When the control socket closes it kills all children and ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import glob
import importlib
import importlib.util
import mmap
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NoReturn

KINDS = ("oracle", "resident", "controls", "trace", "init", "ttir", "binary", "direct", "confirm", "teach")
"""Job kinds; each is served by the module of this package with the same name."""
GATHER_AFTER = 24
"""Jobs after which the memory that all of them share is gathered: for fewer it does not pay."""
FRESH = 8 << 10
"""Bytes at the end of the heap that may be unused."""
PIECES = 10_000
"""Pieces of a size that are taken out of use at most."""
HUGE = 2 << 20
"""Bytes of a huge page."""
MADV_COLLAPSE = 25
"""Linux's number; Python's `mmap` has no name for it."""


def serve(control_fd: int, test_kinds: dict[str, str], preload: str | None = None) -> NoReturn:
    """Import, warm up, say `ready` and serve. `test_kinds` maps further kinds to handler files; the library
    `preload` is loaded before what the imports load."""
    started = time.monotonic()
    control = socket.socket(fileno=control_fd)
    control.set_inheritable(False)
    prepared = take_rights()
    if preload is not None:
        ctypes.CDLL(preload)
    handlers = load_handlers(test_kinds)
    # What this trusted process imports may be compiled for the next start: without that a start takes twice as long.
    # Children write nothing beside what all share.
    sys.dont_write_bytecode = True
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        # A child would inherit locks that threads it does not have may hold.
        raise RuntimeError(f"the imports or a warm-up started {threads - 1} threads")
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection in the zygote would unshare pages with every child
    use_up()
    Zygote(control, handlers).run(ready(handlers, prepared, time.monotonic() - started))


def take_rights() -> str:
    """Get the right to confine children, if need be as the first process of namespaces of our own. Says how."""
    from tilewright import _core

    fork_next, how = _core.prepare_zygote()
    if not fork_next:
        return how
    pid = os.fork()
    if pid == 0:
        _core.die_with_parent()
        return how
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    status = os.waitpid(pid, 0)[1]
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def load_handlers(test_kinds: dict[str, str]) -> dict[str, ModuleType]:
    """Import every handler that exists, with torch and Triton, and let each warm what its children need."""
    import torch
    import triton  # noqa: F401

    torch.set_num_threads(1)
    handlers = {}
    for kind in KINDS:
        name = f"tilewright.cell.{kind}"
        if importlib.util.find_spec(name) is not None:
            handlers[kind] = importlib.import_module(name)
    for kind, path in test_kinds.items():
        spec = importlib.util.spec_from_file_location(f"tilewright_test_{kind}", path)
        assert spec is not None and spec.loader is not None
        handlers[kind] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(handlers[kind])
    for warm in {getattr(module, "warm", None) for module in handlers.values()} - {None}:
        warm()
    return handlers


def ready(handlers: dict[str, ModuleType], prepared: str, seconds: float) -> dict[str, Any]:
    """The message that opens service: versions, kinds, and what Python itself must be able to read in a child."""
    import torch
    import triton

    return {
        "ready": {
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "triton": triton.__version__,
            "kinds": sorted(handlers),
            "seconds": seconds,
            "user_namespace": prepared,
            "read_paths": read_paths(),
            "execute_paths": execute_paths(triton),
        }
    }


def read_paths() -> list[str]:
    """Folders that hold the interpreter, its packages and the system's libraries: read-only in every child."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    repository = os.path.dirname(package)  # of an editable installation: only the package in it is readable
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, package]
    folders += [path for path in sys.path if os.path.isdir(path) and os.path.abspath(path) != repository]
    folders += ["/usr", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/localtime"]
    folders += ["/dev/null", "/dev/urandom", "/sys/devices/system/cpu"]
    return [path for path in dict.fromkeys(folders) if os.path.exists(path)]


def execute_paths(triton: ModuleType) -> list[str]:
    """The assemblers that Triton ships, the only programs that a child may start, and the loader that starts them."""
    loaders = glob.glob("/lib64/ld-linux-*.so.*") + glob.glob("/lib/ld-linux-*.so.*")
    return [os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin"), *loaders]


class Zygote:
    """The fork server. `jobs` maps the pid of each living child to its job."""

    def __init__(self, control: socket.socket, handlers: dict[str, ModuleType]) -> None:
        self.control = control
        self.handlers = handlers
        self.jobs: dict[int, int] = {}
        self.started = 0
        self.gathering: Iterator[None] = iter(())
        """Gathers memory step by step."""

    def run(self, greeting: dict[str, Any]) -> NoReturn:
        """Answer control messages and reap children until the control socket closes."""
        from tilewright.cell import channel

        signal_read, signal_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(signal_write, warn_on_full_buffer=False)
        selector = selectors.DefaultSelector()
        selector.register(self.control, selectors.EVENT_READ)
        selector.register(signal_read, selectors.EVENT_READ)
        try:
            channel.send_packet(self.control, greeting)
            idle = True
            while True:
                # Without a message at hand: the next step of the gathering, as long as there is one.
                events = selector.select(None if idle else 0.0)
                idle = not events and next(self.gathering, True) is True
                for key, _ in events:
                    if key.fd == signal_read:
                        os.read(signal_read, 4096)
                        self.reap()
                    elif (packet := channel.receive_packet(self.control)) is not None:
                        self.start(*packet)
                    else:
                        self.end()
        except (ConnectionError, BrokenPipeError):
            self.end()

    def start(self, job: dict[str, Any], descriptors: list[int]) -> None:
        """Fork the child of one job. The zygote's own copies of the job's descriptors are closed at once."""
        from tilewright import _core
        from tilewright.cell import channel, child

        job_fd, output_fd, *given = descriptors
        handler = self.handlers.get(job["kind"])
        try:
            if handler is None:
                channel.send_packet(self.control, {"refused": job["job"], "why": f"no handler for {job['kind']!r}"})
                return
            entered = _core.enter_pid_namespace()
            try:
                pid = os.fork()
                if pid == 0:
                    child.main(job, handler.run, job_fd, output_fd, *given)
            finally:
                if entered:
                    _core.leave_pid_namespace()
        except OSError as error:
            channel.send_packet(self.control, {"refused": job["job"], "why": f"fork: {error}"})
            return
        finally:
            for fd in descriptors:
                os.close(fd)
        self.jobs[pid] = job["job"]
        self.started += 1
        if self.started == GATHER_AFTER:
            self.gathering = gather()
        pidfd = os.pidfd_open(pid)
        channel.send_packet(self.control, {"started": job["job"], "pid": pid}, (pidfd,))
        os.close(pidfd)

    def reap(self) -> None:
        """Report every child that has ended, after killing what may be left of its process group."""
        from tilewright.cell import channel

        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            # The pid is still taken (WNOWAIT), so the group is the child's own.
            kill_group(ended.si_pid)
            pid, status, usage = os.wait4(ended.si_pid, 0)
            job = self.jobs.pop(pid, None)
            if job is not None:
                cpu = usage.ru_utime + usage.ru_stime
                message = {"exited": job, "status": status, "max_rss_kb": usage.ru_maxrss, "cpu_seconds": cpu}
                channel.send_packet(self.control, message)

    def end(self) -> NoReturn:
        """Kill all children and end: nobody is left to take their answers."""
        for pid in self.jobs:
            kill_group(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os._exit(0)


def use_up() -> None:
    """Take the pieces that lie free in C's heap out of use: a child would copy a page for each that it is given."""
    libc = ctypes.CDLL(None)
    libc.malloc.argtypes, libc.malloc.restype = (ctypes.c_size_t,), ctypes.c_void_p
    libc.sbrk.argtypes, libc.sbrk.restype = (ctypes.c_ssize_t,), ctypes.c_void_p
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)  # also joins pieces
    top = libc.sbrk(0) - FRESH
    for size in (*(1 << power for power in range(16, 10, -1)), *range(1024, 16, -32)):
        for _ in range(PIECES):
            place = libc.malloc(size)
            if place is None or place >= top:
                break


def gather() -> Iterator[None]:
    """Have the kernel move this process's memory into huge pages, one a step, where it can (Linux 6.1): a fork copies
    an entry for each page, and half of what it costs is that."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    done = failed = 0
    for start, end in private_memory():
        libc.madvise(start, end - start, mmap.MADV_HUGEPAGE)
        for place in range(start, end, HUGE):
            if libc.madvise(place, HUGE, MADV_COLLAPSE) == 0:
                done += 1
            elif (failed := failed + 1) >= 16 and done == 0:
                return
            yield


def private_memory() -> Iterator[tuple[int, int]]:
    """Memory of this process that no file holds: first and last address of what whole huge pages cover."""
    with open("/proc/self/maps") as file:
        lines = file.read().splitlines()
    for line in lines:
        span, rights, *_, name = [*line.split(maxsplit=5), ""][:6]
        if rights == "rw-p" and name.strip() in ("", "[heap]"):
            first, last = (int(address, 16) for address in span.split("-"))
            start, end = -(-first // HUGE) * HUGE, last // HUGE * HUGE
            if start < end:
                yield start, end


def kill_group(pid: int) -> None:
    """Kill the process group that the child with this pid leads, if it has made one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
