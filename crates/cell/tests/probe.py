"""Test-only job kind: does one hostile (or plain) thing and says what came of it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
JOB_FD = 3


def run(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """Call the action that the request names with its arguments."""
    arguments = dict(request)
    return {"ok": globals()["do_" + arguments.pop("do")](scratch=scratch, **arguments)}


def attempt(action: Any) -> str:
    """Run something that should be refused; say how it was."""
    try:
        result = action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return f"done: {result!r}"[:200]


def syscall(number: int, *arguments: Any) -> str:
    """A raw system call, by number on x86-64."""
    result = libc.syscall(ctypes.c_long(number), *arguments)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]


def do_echo(scratch: str, value: Any) -> Any:
    return value


def do_environment(scratch: str) -> Any:
    return {"environment": dict(os.environ), "folder": os.getcwd(), "pid": os.getpid(), "uid": os.getuid()}


def do_print(scratch: str, bytes: int) -> Any:
    line = "x" * 1023 + "\n"
    for _ in range(bytes // 1024):
        sys.stdout.write(line)
    return bytes


def do_sleep(scratch: str) -> Any:
    while True:
        time.sleep(1)


def do_spin(scratch: str) -> Any:
    while True:
        pass


def do_fork(scratch: str, children: int) -> Any:
    """Forks at most `children` sleeping children, each in a session of its own if it can."""
    made = 0
    for _ in range(children):
        try:
            pid = os.fork()
        except OSError as error:
            return {"made": made, "refused": errno.errorcode[error.errno]}
        if pid == 0:
            with contextlib.suppress(OSError):
                os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
            os._exit(0)
        made += 1
    return {"made": made, "refused": None}


def do_threads(scratch: str, threads: int) -> Any:
    import threading

    made = 0
    for _ in range(threads):
        try:
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        except RuntimeError:
            break
        made += 1
    return made


def do_kill(scratch: str) -> Any:
    results = {}
    for name, pid in [("parent", os.getppid()), ("group", 0), ("everyone", -1)]:
        results[name] = attempt(lambda pid=pid: os.kill(pid, signal.SIGKILL))
    return results


def do_memory(scratch: str, bytes: int) -> Any:
    blocks = []
    for _ in range(bytes >> 20):
        block = bytearray(1 << 20)
        blocks.append(block)
    return len(blocks)


def do_shared_memory(scratch: str) -> Any:
    import mmap

    return attempt(lambda: mmap.mmap(-1, 1 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS))


def do_disk(scratch: str, bytes: int, files: int) -> Any:
    written = 0
    block = b"x" * (1 << 20)
    try:
        for number in range(files):
            with open(os.path.join(scratch, f"file{number}"), "wb", buffering=0) as file:
                for _ in range(bytes // files >> 20):
                    written += file.write(block)
    except OSError as error:
        return {"written": written, "refused": errno.errorcode[error.errno]}
    return {"written": written, "refused": None}


def do_files(scratch: str) -> Any:
    """Leaves some honest files, and some that must not be taken over."""
    os.makedirs(os.path.join(scratch, "a/b"))
    with open(os.path.join(scratch, "a/b/data"), "w") as file:
        file.write("hello")
    os.symlink("/etc/passwd", os.path.join(scratch, "link"))
    os.symlink("/", os.path.join(scratch, "root"))
    with open(os.path.join(scratch, "sparse"), "wb") as file:
        file.truncate(1 << 20)
    return attempt(lambda: os.mkfifo(os.path.join(scratch, "pipe")))


def do_socket(scratch: str) -> Any:
    families = {"inet": socket.AF_INET, "inet6": socket.AF_INET6, "unix": socket.AF_UNIX, "netlink": 16, "packet": 17}
    return {name: attempt(lambda f=family: socket.socket(f, socket.SOCK_STREAM)) for name, family in families.items()}


def do_read(scratch: str, paths: list[str]) -> Any:
    def look(path: str) -> Any:
        return os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(100)

    return {path: attempt(lambda p=path: look(p)) for path in paths}


def do_write(scratch: str, paths: list[str]) -> Any:
    return {path: attempt(lambda p=path: open(p, "w").close()) for path in paths}


def do_attributes(scratch: str, path: str) -> Any:
    return {
        "chmod": attempt(lambda: os.chmod(path, 0o777)),
        "chown": attempt(lambda: os.chown(path, 0, 0)),
        "utime": attempt(lambda: os.utime(path, (0, 0))),
        "setxattr": attempt(lambda: os.setxattr(path, "user.x", b"1")),
    }


def do_processes(scratch: str, zygote: int) -> Any:
    """What can be seen and done of other processes."""
    try:
        seen = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        seen = []
    return {
        "seen": seen,
        "mem": attempt(lambda: open(f"/proc/{zygote}/mem", "rb").read(1)),
        "environ": attempt(lambda: open(f"/proc/{zygote}/environ", "rb").read(10)),
        "ptrace": syscall(101, ctypes.c_long(16), ctypes.c_long(zygote), None, None),
        "process_vm_readv": syscall(310, ctypes.c_long(zygote), None, 0, None, 0, 0),
        "pidfd_open": syscall(434, ctypes.c_long(zygote), ctypes.c_long(0)),
    }


def do_calls(scratch: str) -> Any:
    """Raw system calls that must be refused, by their x86-64 numbers."""
    zero = ctypes.c_long(0)
    numbers = {
        "mount": 165, "umount2": 166, "unshare": 272, "setns": 308, "bpf": 321, "perf_event_open": 298, "keyctl": 250,
        "userfaultfd": 323, "kexec_load": 246, "memfd_create": 319, "shmget": 29, "setsid": 112, "personality": 135,
        "io_uring_setup": 425, "clone3": 435, "open_by_handle_at": 304, "setresuid": 117, "fchmodat2": 452,
        "inotify_init": 253, "inotify_init1": 294, "inotify_add_watch": 254, "flock": 73, "quotactl_fd": 443,
        "setxattrat": 463, "open_tree_attr": 467, "a call that does not exist yet": 600,
        "x32_getpid": 0x40000000 + 39, "socket": 41,
    }  # fmt: skip
    refused = {name: syscall(number, zero, zero, zero, zero, zero) for name, number in numbers.items()}
    for name, flag in {"newuser": 0x10000000, "sibling": 0x8000}.items():
        refused[f"clone_{name}"] = syscall(56, ctypes.c_long(flag | 17), zero, zero, zero, zero)
    # Memory that grows downwards counts as stack, not as data.
    private_growing = ctypes.c_long(0x2 | 0x20 | 0x100)
    refused["mmap_growsdown"] = syscall(9, zero, ctypes.c_long(1 << 33), ctypes.c_long(3), private_growing, -1, zero)
    for name, option in {"pdeathsig": 1, "dumpable": 4}.items():
        refused[f"prctl_{name}"] = syscall(157, ctypes.c_long(option), ctypes.c_long(1 if name == "dumpable" else 0))
    return refused


def do_shared_files(scratch: str, other: int) -> Any:
    """What two jobs could say to each other over a file that both can read, and to whom its signals could go."""
    import fcntl

    whole_file = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
    folder, file = os.open(os.path.dirname(os.__file__), os.O_RDONLY), os.open(os.__file__, os.O_RDONLY)
    return {
        "flock": attempt(lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)),
        "lock": attempt(lambda: fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)),
        "lock of the description": attempt(lambda: fcntl.fcntl(file, 37, whole_file)),
        "lease": attempt(lambda: fcntl.fcntl(file, 1024, fcntl.F_RDLCK)),
        "notices": attempt(lambda: fcntl.fcntl(folder, 1026, 1)),
        "owner": attempt(lambda: fcntl.fcntl(file, 8, other)),
        "signal": attempt(lambda: fcntl.fcntl(file, 10, signal.SIGKILL)),
    }


def do_schedule(scratch: str, other: int) -> Any:
    """How another process could be slowed down."""
    mask = ctypes.c_ulong(1)
    pid = ctypes.c_long(other)
    return {
        "affinity": syscall(203, pid, ctypes.c_long(8), ctypes.byref(mask)),
        "priority": syscall(141, ctypes.c_long(0), pid, ctypes.c_long(19)),
        "disk": syscall(251, ctypes.c_long(1), pid, ctypes.c_long(3 << 13)),
        "limit": syscall(302, pid, ctypes.c_long(0), ctypes.byref(mask), None),
    }


def do_limits(scratch: str) -> Any:
    import resource

    return {"stack": resource.getrlimit(resource.RLIMIT_STACK)[1], "core": resource.getrlimit(resource.RLIMIT_CORE)[1]}


def do_write_given(scratch: str, text: str) -> Any:
    """Write to the descriptor that the job was given; the descriptors that there are."""
    os.write(4, text.encode())
    return sorted(do_descriptors(scratch))


def do_descriptors(scratch: str) -> Any:
    """Open descriptors, found by trying them all."""
    found = {}
    for fd in range(4096):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except PermissionError:
            found[fd] = "open"
        except OSError:
            try:
                os.fstat(fd)
                found[fd] = "open"
            except OSError:
                pass
    return found


def do_garbage(scratch: str, bytes: str) -> Any:
    os.write(JOB_FD, bytes.encode("latin-1"))
    return "sent"


def do_huge(scratch: str) -> Any:
    os.write(JOB_FD, struct.pack("<I", 0xFFFFFFFF))
    while True:
        os.write(JOB_FD, b"x" * 65536)


def do_half(scratch: str) -> Any:
    os.write(JOB_FD, struct.pack("<I", 100) + b'{"a":')
    os._exit(0)


def do_answer_and_stay(scratch: str) -> Any:
    text = json.dumps({"ok": "early"}).encode()
    os.write(JOB_FD, struct.pack("<I", len(text)) + text)
    time.sleep(600)


def do_exit(scratch: str, status: int) -> Any:
    os._exit(status)


def do_crash(scratch: str) -> Any:
    ctypes.string_at(0)


def do_raise(scratch: str) -> Any:
    raise KeyError("probe")


def do_system_exit(scratch: str) -> Any:
    raise SystemExit(0)


def do_close_all(scratch: str) -> Any:
    os.closerange(0, 100)
    time.sleep(600)


def do_program(scratch: str, command: list[str]) -> Any:
    def start() -> Any:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout[:100], done.stderr[:200]

    return attempt(start)


def do_torch(scratch: str) -> Any:
    import torch

    torch.manual_seed(0)
    layer = torch.nn.Linear(64, 32)
    return float(layer(torch.ones(4, 64)).sum())
