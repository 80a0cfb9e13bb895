"""System calls that neither a tracer nor a compiler needs, each a way out or a large surface."""

from __future__ import annotations

import ctypes
import os
import resource
from typing import Any

from tools import Attempts, call, libc

PATH = ctypes.c_char_p(b"/")
NEW_USER, CHILD, NEW_EVERYTHING = 0x10000000, 17, 0x7E020000
PARENT = 0x8000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_MM, PR_SET_PTRACER = 1, 4, 35, 0x59616D61
PRIVATE, ANONYMOUS, GROWSDOWN = 2, 0x20, 0x100


def change_process(option: int, value: int) -> int:
    if libc.prctl(option, value, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "prctl")
    return option


def raise_limit(kind: int) -> None:
    """More than the sandbox has set."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (hard + 1, hard + 1))


def attempts(want: dict[str, Any]) -> Attempts:
    for name in (
        "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_setup", "keyctl", "kexec_load", "init_module",
        "reboot", "iopl", "modify_ldt", "personality", "fanotify_init", "quotactl_fd", "open_tree_attr", "setxattrat",
        "file_setattr", "fchmodat2", "process_madvise", "clone3",
    ):  # fmt: skip
        yield name, lambda name=name: call(name, 0, 0, 0, 0, 0, 0)
    yield "new namespaces", lambda: call("unshare", NEW_EVERYTHING)
    yield "new user namespace", lambda: call("clone", NEW_USER | CHILD, 0, 0, 0, 0)
    yield "sibling", lambda: call("clone", PARENT | CHILD, 0, 0, 0, 0)
    yield "other namespace", lambda: call("setns", os.open("/proc/self/ns/mnt", os.O_RDONLY), 0)
    yield "mount", lambda: call("mount", PATH, PATH, PATH, 0x1000, None)
    yield "open tree", lambda: call("open_tree", -100, PATH, 1)
    yield "new file system", lambda: call("fsopen", ctypes.c_char_p(b"tmpfs"), 0)
    yield "new root", lambda: call("pivot_root", PATH, PATH)
    yield "change root", lambda: os.chroot("/usr")
    yield "become root", lambda: os.setuid(0)
    yield "groups", lambda: os.setgroups([0])
    yield "outlive the parent", lambda: change_process(PR_SET_PDEATHSIG, 0)
    yield "be dumped", lambda: change_process(PR_SET_DUMPABLE, 1)
    yield "be traced", lambda: change_process(PR_SET_PTRACER, -1)
    yield "move the program", lambda: change_process(PR_SET_MM, 1)
    yield "more memory", lambda: raise_limit(resource.RLIMIT_DATA)
    yield "more time", lambda: raise_limit(resource.RLIMIT_CPU)
    yield "core dump", lambda: raise_limit(resource.RLIMIT_CORE)
    yield "more descriptors", lambda: raise_limit(resource.RLIMIT_NOFILE)
    yield "memory that does not count", lambda: call("mmap", 0, 1 << 33, 3, PRIVATE | ANONYMOUS | GROWSDOWN, -1, 0)
    yield "own stack without a bound", lambda: [s for s in resource.getrlimit(resource.RLIMIT_STACK) if s > 64 << 20]
    yield "own unknown calls", lambda: [number for number in (463, 500, 1000, 0x40000000 + 39) if _exists(number)]


def _exists(number: int) -> bool:
    ctypes.set_errno(0)
    return libc.syscall(ctypes.c_long(number), 0, 0, 0, 0, 0, 0) >= 0 or ctypes.get_errno() != 38
