"""A running `tilewright verify --batch -`, and what the machine does meanwhile."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECTOR = 0.2
"""Seconds between two looks at the machine."""


ENDED = threading.Event()
"""Somebody wants an end: what is there is told."""


def end_on_signal() -> None:
    """Have SIGTERM end the waiting for answers, not the program."""

    def end(*_: object) -> None:
        # Not by an exception: it could come while the queue of answers holds its lock.
        ENDED.set()
        # Who hangs all the same says where.
        faulthandler.dump_traceback_later(5.0)

    signal.signal(signal.SIGTERM, end)


class Service:
    """Requests in, answers out, as they come."""

    def __init__(self, binary: str, target: str, *options: str) -> None:
        command = [binary, "verify", "--batch", "-", *options]
        if target != "cpu":
            command += ["--target", target]
        self.errors = open(os.environ.get("OUT", "/tmp") + "/service.log", "w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        self.answers: queue.Queue[tuple[float, dict[str, Any]] | None] = queue.Queue()
        self.over = False
        self.hands: list[threading.Thread] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # A service that is killed may leave a part of a line.
            with contextlib.suppress(ValueError):
                self.answers.put((time.monotonic(), json.loads(line)))
        self.answers.put(None)

    def ask(self, number: int, problem: Path, candidate: Path) -> None:
        """Hand in one request."""
        assert self.process.stdin is not None
        request = {"id": number, "problem": str(problem), "candidate": str(candidate)}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def ask_all(self, requests: list[tuple[int, Path, Path]]) -> None:
        """Hand in many: by a thread, since the service takes them only as fast as it works."""

        def hand_in() -> None:
            try:
                for request in requests:
                    if self.over:
                        return
                    self.ask(*request)
            except (BrokenPipeError, ValueError):
                return  # it has ended; the answers tell

        self.hands.append(threading.Thread(target=hand_in, daemon=True))
        self.hands[-1].start()

    def take(self, count: int, timeout: float) -> Iterator[tuple[float, dict[str, Any]]]:
        """The next answers, each with the moment of its coming."""
        end = time.monotonic() + timeout
        while count > 0 and time.monotonic() < end and not ENDED.is_set():
            try:
                answer = self.answers.get(timeout=SECTOR)
            except queue.Empty:
                continue
            if answer is None:
                return
            yield answer
            count -= 1

    def close(self, patience: float = 30.0) -> str:
        """End it, at the latest after so many seconds; the end of what it said on stderr."""
        assert self.process.stdin is not None
        self.over = True
        for hand in self.hands:
            hand.join(patience)
            if hand.is_alive():  # in the middle of a line that the service does not take
                self.process.kill()
        with contextlib.suppress(OSError, ValueError):
            self.process.stdin.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.errors.seek(0)
        return self.errors.read()[-3000:]


class Watch:
    """Samples of the machine: cores in use, memory, and the first GPU by its driver."""

    def __init__(self) -> None:
        self.memory = [available_bytes()]
        self.gpu: list[tuple[float, float]] = []
        self.over = threading.Event()
        self.cores = busy_seconds()
        self.start = time.monotonic()
        self.smi = start_smi()
        threading.Thread(target=self._look, daemon=True).start()
        if self.smi is not None:
            threading.Thread(target=self._look_at_gpu, daemon=True).start()

    def _look(self) -> None:
        while not self.over.wait(SECTOR):
            self.memory.append(available_bytes())

    def _look_at_gpu(self) -> None:
        assert self.smi is not None and self.smi.stdout is not None
        for line in self.smi.stdout:
            try:
                use, memory = line.split(",")
                self.gpu.append((float(use), float(memory)))
            except ValueError:
                continue

    def end(self) -> dict[str, float | None]:
        """What was seen: cores in use on average, and peaks."""
        self.over.set()
        if self.smi is not None:
            self.smi.terminate()
        seconds = time.monotonic() - self.start
        mean = sum(use for use, _ in self.gpu) / len(self.gpu) / 100 if self.gpu else None
        return {
            "cores_busy": (busy_seconds() - self.cores) / seconds,
            "host_bytes_peak": self.memory[0] - min(self.memory),
            "gpu_busy_by_driver": mean,
            "gpu_mib_peak": max((memory for _, memory in self.gpu), default=None),
        }


def start_smi() -> subprocess.Popen[str] | None:
    """The driver's own sampling, where there is a driver."""
    query = ["--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits", "-lms", "100", "-i", "0"]
    try:
        return subprocess.Popen(["nvidia-smi", *query], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except FileNotFoundError:
        return None


def available_bytes() -> int:
    """Memory that is free for use."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def busy_seconds() -> float:
    """Processor time of this machine so far, all cores and all processes."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK")


def processor_seconds(root: int) -> dict[str, float]:
    """Processor time so far of a service, by who took it. Jobs count when they have ended."""
    stats: dict[int, list[str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stats[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
    tick, found = os.sysconf("SC_CLK_TCK"), dict.fromkeys(("tilewright", "executors", "zygote", "jobs", "data"), 0.0)
    for pid, stat in stats.items():
        above = [pid]
        while above[-1] != root and above[-1] in stats:
            above.append(int(stats[above[-1]][1]))
        if above[-1] != root:
            continue
        own, ended = (sum(map(int, stat[at : at + 2])) / tick for at in (11, 13))
        try:
            words = (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if pid == root:
            found["tilewright"] += own
        elif b"executor" in words:
            found["executors"] += own
        elif len(above) == 2:
            found["zygote"] += own
            found["jobs"] += ended
        else:
            found["data"] += own
    return found
