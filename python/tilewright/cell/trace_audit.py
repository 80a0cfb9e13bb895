"""Python's audit events: what a candidate asks of the interpreter and the system while it is imported and traced."""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from .trace_record import TraceEnd

if TYPE_CHECKING:
    from .trace import Session

# Refused and stopped: nothing that a kernel's host code needs.
_REFUSED = {
    "subprocess.Popen": ("process", "starts a process"),
    "os.fork": ("process", "forks"),
    "os.forkpty": ("process", "forks"),
    "os.exec": ("process", "replaces the process"),
    "os.posix_spawn": ("process", "starts a process"),
    "os.system": ("process", "runs a shell command"),
    "pty.spawn": ("process", "starts a process"),
    "socket.__new__": ("network", "opens a socket"),
    "socket.connect": ("network", "connects to the network"),
    "ctypes.dlopen": ("native-code", "loads a native library"),
    "ctypes.dlsym": ("native-code", "calls native code"),
    "ctypes.call_function": ("native-code", "calls native code"),
    "sys.addaudithook": ("tampering", "adds an audit hook"),
    "sys.settrace": ("tampering", "traces the interpreter"),
    "sys.setprofile": ("tampering", "profiles the interpreter"),
    "os.remove": ("file-access", "removes a file"),
    "os.rename": ("file-access", "renames a file"),
    "os.mkdir": ("file-access", "makes a folder"),
    "os.rmdir": ("file-access", "removes a folder"),
    "os.kill": ("process", "sends a signal"),
    "signal.pthread_kill": ("process", "sends a signal"),
}

# Harmless here, because there is nothing to find, but worth knowing.
_NOTED = {
    "sys._getframe": ("inspects-frames", "walks the interpreter's frames"),
    "sys._current_frames": ("inspects-frames", "walks the interpreter's frames"),
    "gc.get_objects": ("inspects-memory", "searches the interpreter's memory"),
    "gc.get_referrers": ("inspects-memory", "searches the interpreter's memory"),
    "os.listdir": ("file-access", "looks through folders"),
    "os.scandir": ("file-access", "looks through folders"),
    "glob.glob": ("file-access", "looks through folders"),
}


class Audit:
    """Watches from `start` until `stop`; an audit hook cannot be removed, so it is switched."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._on = False
        self._busy = False

    def start(self) -> None:
        self._on = True
        sys.addaudithook(self._hook)
        _thread.start_new_thread = self._no_thread
        threading._start_new_thread = self._no_thread

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """For work of the tracer itself on the candidate's behalf."""
        before, self._on = self._on, False
        try:
            yield
        finally:
            self._on = before

    def stop(self) -> None:
        self._on = False

    def _no_thread(self, *args: Any, **kwargs: Any) -> int:
        """Threads have no audit event in Python 3.11."""
        self._session.note("thread", "proof", "the file starts a thread")
        raise TraceEnd

    def _hook(self, event: str, args: Any) -> None:
        if not self._on or self._busy:
            return
        if event not in _REFUSED and event not in _NOTED and event != "open":
            return
        self._busy = True
        try:
            self._seen(event, args, sys._getframe(1))
        finally:
            self._busy = False

    def _seen(self, event: str, args: Any, caller: FrameType | None) -> None:
        session = self._session
        path = session.source.path
        if event == "open":
            if _asked_by(path, caller, None):
                self._opened(args)
        elif event in _NOTED:
            if _asked_by(path, caller, 2):
                rule, what = _NOTED[event]
                session.note(rule, "evidence", f"the file {what}")
        elif _asked_by(path, caller, None):
            rule, what = _REFUSED[event]
            session.note(rule, "proof", f"the file {what}")
            raise TraceEnd

    def _opened(self, args: Any) -> None:
        path, mode, flags = (*args, None, None)[:3]
        session = self._session
        if not isinstance(path, (str, bytes)):
            return
        path = os.path.abspath(os.fsdecode(path))
        writes = (isinstance(mode, str) and any(c in mode for c in "wax+")) or bool(
            (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        if writes:
            session.note("file-access", "proof", f"the file writes to {os.path.basename(path)}")
        elif path != session.source.path and not path.startswith((sys.prefix, sys.base_prefix)):
            session.note("file-access", "evidence", f"the file reads {os.path.basename(path)}")


def _asked_by(path: str, frame: FrameType | None, limit: int | None) -> bool:
    """Whether one of the `limit` frames from `frame` outwards belongs to `path`, without an import between."""
    while frame is not None and limit != 0:
        name = frame.f_code.co_filename
        if name == path:
            return True
        if name.startswith("<frozen importlib"):
            return False
        frame = frame.f_back
        limit = None if limit is None else limit - 1
    return False
