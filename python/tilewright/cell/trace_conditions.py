"""What differs from run to run on a real machine: clocks, process, host, and how full the device is.

A file may ask, and what it is told differs from trace to trace, so that what depends on it shows as another plan.
"""

from __future__ import annotations

import datetime
import os
import platform
import socket
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from .trace_device import Card
from .trace_record import TraceEnd
from .trace_seal import sealed

if TYPE_CHECKING:
    from .trace import Session


@dataclass
class Conditions:
    """The circumstances of a trace that its signature does not name."""

    seconds: float = 0.0
    """How far the clocks are ahead."""
    tick: float | None = None
    """Seconds from one look at a clock to the next; None while real time passes."""
    used: int = 6 << 20
    """Bytes of the device's memory that are taken."""
    salt: int = 0
    """Changes identities, hashes of text, and what the process and the host are called."""

    def look(self) -> float:
        """What to add to the time at a look at a clock."""
        self.seconds += self.tick or 0.0
        return self.seconds


def install(session: Session) -> None:
    """Replaces clocks and allocator statistics in this process."""
    _install_clocks(session.conditions)
    _install_host(session.conditions)
    install_memory(session.conditions, session.card, session.note)


def _install_clocks(conditions: Conditions) -> None:
    def clock(real: Callable[..., Any], unit: float) -> Callable[..., Any]:
        stood = {}

        def read(*args: Any) -> Any:
            if conditions.tick is None:
                return real(*args) + type(real(*args))(conditions.look() * unit)
            start = stood.setdefault(args, real(*args))
            return start + type(start)(conditions.look() * unit)

        return read

    for name in ("time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime"):
        setattr(time, name, sealed(clock(getattr(time, name), 1.0), name))
        setattr(time, f"{name}_ns", sealed(clock(getattr(time, f"{name}_ns"), 1e9), f"{name}_ns"))
    timeit.default_timer = time.perf_counter

    def sleep(seconds: float) -> None:
        conditions.seconds += max(float(seconds), 0.0)

    time.sleep = sealed(sleep)
    real_datetime = datetime.datetime

    class Shifted(real_datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return real_datetime.now(tz) + datetime.timedelta(seconds=conditions.look())

        @classmethod
        def utcnow(cls) -> Any:
            return cls.now(datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    Shifted.__name__ = Shifted.__qualname__ = "datetime"
    datetime.datetime = Shifted


def _install_host(conditions: Conditions) -> None:
    def number(real: Callable[[], int], span: int) -> Callable[[], int]:
        return lambda: real() + conditions.salt % span

    def name(real: Callable[[], str]) -> Callable[[], str]:
        return lambda: f"{real()}-{conditions.salt}" if conditions.salt else real()

    for owner, attribute, make in (
        (os, "getpid", lambda real: number(real, 1000)),
        (os, "getppid", lambda real: number(real, 1000)),
        (os, "cpu_count", lambda real: number(real, 7)),
        (torch, "get_num_threads", lambda real: number(real, 3)),
        (socket, "gethostname", name),
        (platform, "node", name),
    ):
        setattr(owner, attribute, sealed(make(getattr(owner, attribute)), attribute))


_USED = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached")
_MEMORY = ("memory_stats", "memory_stats_as_nested_dict", "memory_summary", "memory_snapshot", "_snapshot")
_SENSORS = ("utilization", "memory_usage", "temperature", "power_draw", "clock_rate", "list_gpu_processes")


def install_memory(conditions: Conditions, card: Card, note: Callable[..., None]) -> None:
    """Allocator statistics and sensors of the device; `note` takes a finding's rule, tier and message."""

    def noted() -> int:
        message = "the file asks how much of the device's memory is in use"
        note("reads-memory-state", "evidence", message)
        return conditions.used

    def used(device: Any = None) -> int:
        return noted()

    def free(device: Any = None) -> tuple[int, int]:
        total = card.figures().total_memory
        return total - (1 << 29) - noted(), total

    def refuse(rule: str, name: str) -> Callable[..., Any]:
        def method(*args: Any, **kwargs: Any) -> Any:
            note(rule, "untraceable", f"the file asks for torch.cuda.{name}, which depends on the machine")
            raise TraceEnd

        return method

    answers: dict[str, Callable[..., Any]] = {
        "mem_get_info": free,
        "reset_peak_memory_stats": lambda device=None: None,
        "reset_accumulated_memory_stats": lambda device=None: None,
        "reset_max_memory_allocated": lambda device=None: None,
        **dict.fromkeys(_USED, used),
        **{name: refuse("reads-memory-state", name) for name in _MEMORY},
        **{name: refuse("reads-clock", name) for name in _SENSORS},
    }
    for name, answer in answers.items():
        for module in (torch.cuda, torch.cuda.memory):
            if hasattr(module, name):
                setattr(module, name, sealed(answer, name))
