"""Python's audit events: what a candidate asks of the interpreter and the system while it is imported and traced."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from .trace_record import TraceEnd
from .trace_seal import sealed

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

# Ways to objects that a file is not given: frames, and whatever lives in the interpreter.
_INSPECTS = {
    "sys._getframe": ("inspects-frames", "walks the interpreter's frames"),
    "sys._current_frames": ("inspects-frames", "walks the interpreter's frames"),
    "sys._current_exceptions": ("inspects-frames", "walks the interpreter's frames"),
    "gc.get_objects": ("inspects-memory", "searches the interpreter's memory"),
    "gc.get_referrers": ("inspects-memory", "searches the interpreter's memory"),
    "gc.get_referents": ("inspects-memory", "searches the interpreter's memory"),
}
# Attributes whose reading (or writing) is an audit event.
_READS = frozenset(("tb_frame", "gi_frame", "cr_frame", "ag_frame", "f_back", "f_code"))
_WRITES = ("__code__", "__defaults__", "__kwdefaults__", "__class__")
# Modules of the library that hand frames on to their caller.
_LENDERS = ("inspect.py", "traceback.py")

# Harmless here, because there is nothing to find, but worth knowing.
_NOTED = {
    "os.listdir": ("file-access", "looks through folders"),
    "os.scandir": ("file-access", "looks through folders"),
    "glob.glob": ("file-access", "looks through folders"),
}
_WATCHED = {*_REFUSED, *_INSPECTS, *_NOTED, "open", "import", "object.__getattr__", "object.__setattr__"}


class Audit:
    """Watches from `start` until `stop`; an audit hook cannot be removed, so it is switched."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._on = False
        self._busy = False

    def start(self) -> None:
        self._on = True
        sys.addaudithook(sealed(self._hook))
        no_thread, no_handler = sealed(self._no_thread, "start_new_thread"), sealed(self._no_handler, "signal")
        _thread.start_new_thread = threading._start_new_thread = no_thread
        signal.signal = signal.setitimer = no_handler

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

    def _no_handler(self, *args: Any, **kwargs: Any) -> None:
        """A signal handler is given a frame, and there is no audit event for it."""
        self._session.note("process", "proof", "the file installs a signal handler")
        raise TraceEnd

    def _hook(self, event: str, args: Any) -> None:
        if event not in _WATCHED or not self._on or self._busy:
            return
        self._busy = True
        try:
            self._seen(event, args, sys._getframe(1))
        finally:
            self._busy = False

    def _seen(self, event: str, args: Any, caller: FrameType | None) -> None:
        session = self._session
        path = session.source.path
        if event in _INSPECTS:
            if _lent_to(path, caller):
                self._refuse(*_INSPECTS[event])
        elif event.startswith("object."):
            self._attribute(event, args, caller)
        elif event == "import":
            if str(args[0]).split(".")[0] == "tilewright" and _asked_by(path, caller, None, imports=True):
                self._refuse("recognises-tracer", "looks for the verifier")
        elif event == "open":
            if _asked_by(path, caller, None) and not _for_texts(caller):
                self._opened(args)
        elif event in _NOTED:
            if _asked_by(path, caller, 2):
                rule, what = _NOTED[event]
                session.note(rule, "evidence", f"the file {what}")
        elif _asked_by(path, caller, None):
            self._refuse(*_REFUSED[event])

    def _refuse(self, rule: str, what: str) -> NoReturn:
        self._session.note(rule, "proof", f"the file {what}")
        raise TraceEnd

    def _attribute(self, event: str, args: Any, caller: FrameType | None) -> None:
        """`args` are the object and the attribute's name, and its new value where it is set."""
        name = args[1]
        if event == "object.__getattr__":
            if name in _READS and _lent_to(self._session.source.path, caller):
                self._refuse("inspects-frames", f"reads `{name}`")
        elif name in _WRITES and _asked_by(self._session.source.path, caller, 2):
            if name != "__class__":
                if getattr(args[0], "__globals__", None) is not self._session.namespace:
                    self._refuse("tampering", f"sets `{name}` of a function that is not its own")
            elif isinstance(args[0], torch.Tensor):
                self._refuse("tensor-subclass", "gives a tensor a class of its own")
            elif isinstance(args[0], ModuleType):
                self._refuse("tampering", "gives a module a class of its own")

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


def _for_texts(frame: FrameType | None) -> bool:
    """Whether the library reads source lines, for the text of a traceback: torch keeps one of each lazy call."""
    names = []
    while frame is not None and len(names) < 3:
        names.append(os.path.basename(frame.f_code.co_filename))
        frame = frame.f_back
    return "linecache.py" in names


def _lent_to(path: str, frame: FrameType | None) -> bool:
    """Whether what `frame` gets goes to the file: it is the file's own, or one of a library that hands it on."""
    while frame is not None and os.path.basename(frame.f_code.co_filename) in _LENDERS:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == path


def _asked_by(path: str, frame: FrameType | None, limit: int | None, imports: bool = False) -> bool:
    """Whether one of the `limit` frames from `frame` outwards belongs to `path`, without an import between (unless
    `imports` are what is asked about)."""
    while frame is not None and limit != 0:
        name = frame.f_code.co_filename
        if name == path:
            return True
        if name.startswith("<frozen importlib") and not imports:
            return False
        frame = frame.f_back
        limit = None if limit is None else limit - 1
    return False
