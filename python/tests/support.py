"""Calls a cell handler as the zygote does: in a forked child, with a scratch folder of its own."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

Handler = Callable[[dict[str, Any], str], dict[str, Any]]


def call(handler: Handler, request: dict[str, Any], seconds: int = 120) -> dict[str, Any]:
    """The handler's response, through JSON; `{"died": status}` if its process did not give one."""
    read, write = os.pipe()
    with tempfile.TemporaryDirectory() as scratch:
        pid = os.fork()
        if pid == 0:
            os.close(read)
            _child(handler, request, scratch, write, seconds)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            answer = pipe.read()
        _, status = os.waitpid(pid, 0)
    return json.loads(answer) if answer else {"died": os.waitstatus_to_exitcode(status)}


def _child(handler: Handler, request: dict[str, Any], scratch: str, write: int, seconds: int) -> None:
    signal.alarm(seconds)
    try:
        answer = json.dumps(handler(json.loads(json.dumps(request)), scratch)).encode()
        while answer:
            answer = answer[os.write(write, answer) :]
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
