"""Faults on this machine's GPU: who is at fault gets the blame, nobody else does, and the GPU computes on.

    python3 scripts/gpu/faults.py BINARY [--kills 50] [--holders 10] [--jobs 1 2] [--skip PART ...] [--json FILE]

raw       an executor is given kernels that no candidate gets past the screen (a trap, an illegal instruction) and the
          plainer faults, while another executor computes; each answer, and how soon a new executor computes again
culprits  a batch of candidates that fault, hang or take all memory, an honest one after each, timed
kills     a batch of honest candidates while its executor processes, and those that hold the problem's data, are killed
          at random moments

Prints Markdown; exit status 1 where an answer is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import triton

LASTS = 3.0
"""Seconds that no job of an honest candidate takes."""
ATTACK = Path(__file__).parent / "attack"
PROBLEM = ATTACK / "problems" / "add_one.py"
HONEST = ATTACK / "honest" / "plain.py"

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 x, .param .u64 scratch, .param .u64 profile)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [x];
    cvta.to.global.u64 %rd1, %rd1;
    BODY
    ret;
}
"""
BODIES = {
    "honest": "mov.b32 %r1, 42;\n st.global.b32 [%rd1], %r1;",
    "trap": "trap;",
    "out of bounds": "add.s64 %rd2, %rd1, 0x4000000000;\n mov.b32 %r1, 7;\n st.global.b32 [%rd2], %r1;",
    "misaligned": "add.s64 %rd2, %rd1, 1;\n mov.b32 %r1, 7;\n st.global.b32 [%rd2], %r1;",
    "endless": "again:\n ld.volatile.global.b32 %r1, [%rd1];\n setp.ne.b32 %p1, %r1, 12345;\n @%p1 bra again;",
}
WANTED = {
    "honest": {"Ran"},
    "trap": {"CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_INSTRUCTION", "CUDA_ERROR_ASSERT"},
    "illegal instruction": {"CUDA_ERROR_ILLEGAL_INSTRUCTION"},
    "out of bounds": {"CUDA_ERROR_ILLEGAL_ADDRESS"},
    "misaligned": {"CUDA_ERROR_MISALIGNED_ADDRESS"},
    "all memory": {"CUDA_ERROR_OUT_OF_MEMORY"},
    "endless": {"timeout"},
}
CULPRITS = {
    "write_far": {"memory_fault"},
    "write_beside": {"memory_fault"},
    "write_stale": {"memory_fault", "incorrect"},
    "misaligned": {"memory_fault", "unsupported"},
    "read_far": {"memory_fault"},
    "overwrite_neighbours": {"memory_fault", "incorrect"},
    "out_of_memory": {"out_of_memory", "rejected"},
    "spin": {"timeout"},
}


class Executor:
    """An executor process, spoken to as the client does: see `crates/replay/src/wire.rs`."""

    def __init__(self, binary: str) -> None:
        self.socket, theirs = socket.socketpair()
        command = [binary, "executor", "--device", "0"]
        self.process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.DEVNULL)
        theirs.close()

    def ask(self, header: Any, blobs: list[bytes], seconds: float = 60.0) -> Any:
        """The header of the answer; "timeout", "gone"."""
        text = json.dumps(header).encode()
        message = struct.pack("<Q", len(text)) + text + struct.pack("<Q", len(blobs))
        message += b"".join(struct.pack("<Q", len(blob)) + blob for blob in blobs)
        self.socket.settimeout(seconds)
        try:
            self.socket.sendall(message)
            answer = json.loads(self.receive(self.word()))
            for _ in range(self.word()):
                self.receive(self.word())
        except TimeoutError:
            return "timeout"
        except (ConnectionError, EOFError):
            return "gone"
        return answer

    def word(self) -> int:
        return struct.unpack("<Q", self.receive(8))[0]

    def receive(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def close(self) -> float:
        """Ends the process by force; how many seconds that took."""
        start = time.monotonic()
        self.process.kill()
        self.process.wait()
        self.socket.close()
        return time.monotonic() - start


def cubin(body: str) -> bytes:
    """A kernel as machine code, by the assembler that comes with Triton."""
    ptxas = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
        source.write_text(PTX.replace("BODY", body))
        subprocess.run([ptxas, "-arch=sm_90", source, "-o", result], check=True, capture_output=True)
        return result.read_bytes()


def illegal(code: bytes) -> bytes:
    """The honest kernel with its instructions overwritten by bits that are no instruction."""
    # The text section: found by its header in the ELF file.
    offset = struct.unpack_from("<Q", code, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, offset + size * at) for at in range(count)]
    strings = headers[names][4]
    for name, _, _, _, start, length, *_ in headers:
        if code[strings + name :].startswith(b".text."):
            # Keep the control bits of each 128-bit instruction; only the opcode is turned into nonsense.
            text = bytearray(code[start : start + length])
            for at in range(0, length, 16):
                text[at : at + 2] = b"\xff\x0f"
            return code[:start] + bytes(text) + code[start + length :]
    raise ValueError("no code in this file")


def program(size: int) -> dict[str, Any]:
    """One launch of `kernel` on one buffer."""
    options = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "enable_fp_fusion": True}
    kernel = {
        "blob": 0,
        "entry": "kernel",
        "threads": 128,
        "shared": 0,
        "options": options,
        "global_scratch": [0, 1],
        "profile_scratch": [0, 1],
    }
    pointer = {"Pointer": {"buffer": 0, "offset": 0}}
    launch = {"Launch": {"kernel": 0, "grid": [1, 1, 1], "params": [pointer], "line": 1}}
    return {
        "Run": {
            "program": {"buffers": [size], "kernels": [kernel], "ops": [launch]},
            "contents": [None],
            "poison": 255,
            "read_back": [],
        }
    }


def name_of(answer: Any) -> str:
    """The kind of an answer in a word."""
    if isinstance(answer, str):
        return answer
    return answer["Failed"]["code"] if "Failed" in answer else next(iter(answer))


def raw(binary: str) -> list[dict[str, Any]]:
    """Faults by kernels of our own."""
    kernels = {name: cubin(body) for name, body in BODIES.items()}
    kernels["illegal instruction"] = illegal(kernels["honest"])
    rows = []
    neighbour, errors, over = Executor(binary), [], threading.Event()

    def compute() -> None:
        while not over.is_set():
            answer = name_of(neighbour.ask(program(1 << 20), [kernels["honest"]]))
            if answer != "Ran":
                errors.append(answer)
                return

    thread = threading.Thread(target=compute)
    thread.start()
    print("| fault | answer | s to the answer | s to end it | s until a new one has computed | |")
    print("|---|---|---|---|---|---|")
    for name, wanted in WANTED.items():
        executor = Executor(binary)
        first = name_of(executor.ask(program(1 << 20), [kernels["honest"]]))
        code = kernels.get(name, kernels["honest"])
        start = time.monotonic()
        size = 1 << 46 if name == "all memory" else 1 << 20
        answer = name_of(executor.ask(program(size), [code], seconds=3.0))
        asked = time.monotonic() - start
        ended = executor.close()
        start = time.monotonic()
        fresh = Executor(binary)
        after = name_of(fresh.ask(program(1 << 20), [kernels["honest"]]))
        again = time.monotonic() - start
        fresh.close()
        right = first == "Ran" and answer in wanted and after == "Ran" and not errors
        rows.append({"name": name, "answer": answer, "right": right, "seconds": [asked, ended, again]})
        good = "" if right else f"**wrong** {first} {after} {errors}"
        print(f"| {name} | {answer} | {asked:.3f} | {ended:.3f} | {again:.3f} | {good} |", flush=True)
    over.set()
    thread.join()
    neighbour.close()
    print(f"\nThe executor beside them: {errors or 'all answers right'}\n")
    return rows


def verify(binary: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    """A batch under way."""
    command = [binary, "verify", str(PROBLEM), "--batch", str(folder), "--target", "cuda:0", "--trials", "2", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def verdicts(process: subprocess.Popen[str], seconds: float) -> dict[str, dict[str, Any]]:
    """Verdicts of a batch by the stem of the candidate's file."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        print("The batch did not end in time.")
    found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    named = Counter(Path(verdict["candidate"]["path"]).stem for verdict in found)
    for name, count in named.items():
        if count > 1:
            print(f"{count} verdicts on {name}")
    if not found:
        print(err[-3000:])
    return {Path(verdict["candidate"]["path"]).stem: verdict for verdict in found}


def told(verdict: dict[str, Any] | None) -> str:
    """A verdict with its first reason and what was noted."""
    if verdict is None:
        return "no verdict"
    reasons = verdict.get("reasons") or []
    notes = [note for note in verdict.get("notes") or [] if "again" in note]
    return "; ".join([verdict["verdict"], *(reason["message"] for reason in reasons[:1]), *notes]).replace("|", "/")[
        :300
    ]


def culprits(binary: str, at_a_time: list[int]) -> list[dict[str, Any]]:
    """Culprits with honest candidates between them, for each number of candidates at a time."""
    rows = []
    for jobs in map(str, at_a_time):
        with tempfile.TemporaryDirectory() as folder:
            wanted = {"00-honest": {"accepted"}}
            shutil.copy(HONEST, Path(folder) / "00-honest.py")
            for number, (name, kinds) in enumerate(CULPRITS.items(), 1):
                shutil.copy(ATTACK / "hack" / f"{name}.py", Path(folder) / f"{number:02}-{name}.py")
                path = Path(folder) / f"{number:02}-then-honest.py"
                path.write_text(HONEST.read_text() + f"# {number}\n")
                wanted |= {f"{number:02}-{name}": kinds, path.stem: {"accepted"}}
            start = time.monotonic()
            found = verdicts(verify(binary, Path(folder), "--jobs", jobs, "--timeout", "12"), 120)
            seconds = time.monotonic() - start
        print(f"\n{len(wanted)} candidates, {jobs} at a time: {seconds:.1f} s\n")
        print("| candidate | verdict | |\n|---|---|---|")
        for name, kinds in wanted.items():
            verdict = found.get(name)
            right = verdict is not None and verdict["verdict"] in kinds
            rows.append({"name": name, "jobs": jobs, "verdict": told(verdict), "right": right})
            if not right or jobs == str(at_a_time[0]):
                print(f"| {name} | {told(verdict)} | {'' if right else '**wrong**'} |")
    return rows


def processes() -> dict[int, tuple[int, float, bytes]]:
    """All processes: the parent, seconds since the start, and the command line."""
    found, ticks = {}, os.sysconf("SC_CLK_TCK")
    now = float(Path("/proc/uptime").read_text().split()[0])
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                after = (entry / "stat").read_text().rpartition(")")[2].split()
                age = now - int(after[19]) / ticks
                found[int(entry.name)] = (int(after[1]), age, (entry / "cmdline").read_bytes())
    return found


def below(ancestor: int) -> tuple[list[int], list[int]]:
    """Executors among the descendants of a process, and those that hold a problem's data: of the Python processes that
    were forked from another, those that have outlived any candidate's job."""
    known = processes()
    python = {pid for pid, (_, _, command) in known.items() if b"tilewright.cell" in command}
    forking = {parent for pid, (parent, _, _) in known.items() if pid in python}
    executors, holders = [], []
    for pid, (parent, age, command) in known.items():
        above = parent
        while above in known and above != ancestor:
            above = known[above][0]
        if above == ancestor and b"executor" in command.split(b"\0"):
            executors.append(pid)
        elif above == ancestor and pid in python - forking and parent in python and age > LASTS:
            holders.append(pid)
    return executors, holders


def kills(binary: str, executors: int, holders: int, candidates: int) -> list[dict[str, Any]]:
    """Honest candidates while processes of ours are killed."""
    rng = random.Random(1)
    order = ["executor"] * executors + ["holder"] * holders
    rng.shuffle(order)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(candidates):
            (Path(folder) / f"honest{number:03}.py").write_text(HONEST.read_text() + f"# {number}\n")
        start = time.monotonic()
        process = verify(binary, Path(folder), "--jobs", "4")
        killed: Counter[str] = Counter()

        def kill() -> None:
            while process.poll() is None and order:
                # Often within a candidate, never all of its tries.
                time.sleep(rng.uniform(0.05, 0.7))
                found = dict(zip(("executor", "holder"), below(process.pid), strict=True))
                # One that is not there yet, or again, gets its turn later.
                rng.shuffle(order)
                if victims := found[order[-1]]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(rng.choice(victims), signal.SIGKILL)
                        killed[order.pop()] += 1

        thread = threading.Thread(target=kill)
        thread.start()
        found = verdicts(process, 240)
        thread.join()
        seconds = time.monotonic() - start
    kinds = Counter(verdict["verdict"] for verdict in found.values())
    right = kinds["accepted"] == candidates == len(found)
    timed = sum(bool((verdict.get("timing") or {}).get("baselines")) for verdict in found.values())
    again = sum(any("again" in note for note in verdict.get("notes") or []) for verdict in found.values())
    print(
        f"\n{candidates} honest candidates in {seconds:.1f} s, killed: {killed['executor']} executors, "
        f"{killed['holder']} processes that hold data: {dict(kinds)}, {candidates - len(found)} lost, "
        f"{timed} timed beside the reference, "
        f"{again} done again{'' if right else ' **wrong**'}"
    )
    for verdict in [v for v in found.values() if v["verdict"] != "accepted"][:5]:
        print("-", told(verdict))
    return [{"name": "kills", "killed": killed, "verdicts": kinds, "right": right, "timed": timed, "seconds": seconds}]


def main() -> int:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--holders", type=int, default=10)
    parser.add_argument("--candidates", type=int, default=160)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    parts = {
        "raw": lambda: raw(options.binary),
        "culprits": lambda: culprits(options.binary, options.jobs),
        "kills": lambda: kills(options.binary, options.kills, options.holders, options.candidates),
    }
    rows = []
    for name, part in parts.items():
        if name not in options.skip:
            print(f"\n### {name}\n", flush=True)
            rows += part()
    if options.json:
        options.json.write_text(json.dumps(rows))
    wrong = [row["name"] for row in rows if not row["right"]]
    print(f"\n{len(rows)} checks, wrong: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
