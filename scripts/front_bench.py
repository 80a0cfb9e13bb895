"""Processor time that the first half of a verdict takes: tracing and compiling, job by job. Needs no GPU and no build.

    python scripts/front_bench.py [--each 2] [--kinds softmax,…] [--against FILE] [--out FILE]

Each job is the zygote's: a fork of a process that did the imports and is frozen; without the confinement. Jobs come one
after the other. Forking is the parent's time; user and system time are the kernel's account of the child and its
children, so that other load matters little. `--out` keeps digests of what was compiled, and `--against` says what
differs from them.
"""

from __future__ import annotations

import argparse
import ast
import base64
import collections
import gc
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "gpu"))

import candidates
from tilewright.cell import child, zygote

H200 = {"backend": "cuda", "arch": "90", "warp_size": 32}
CASES = 3


def main() -> None:
    """All candidates, and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=2, help="candidates of each problem")
    parser.add_argument("--kinds", help="problems, by name")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    kinds = options.kinds.split(",") if options.kinds else [kind.name for kind in candidates.KINDS]
    handlers = zygote.load_handlers({})
    gc.collect()
    gc.freeze()
    gc.disable()
    zygote.use_up()
    list(zygote.gather())  # as a zygote does that has had some jobs
    jobs = Jobs(handlers)
    with tempfile.TemporaryDirectory() as folder:
        made = candidates.write(Path(folder), options.each * len(kinds), False, kinds=kinds)
        cases = {problem: jobs.signatures(problem) for problem in dict.fromkeys(one.problem for one in made)}
        digests = {f"{one.path.parent.name}/{one.path.name}": one_candidate(jobs, one, cases) for one in made}
    print(jobs.table(len(made)))
    if options.out:
        options.out.write_text(json.dumps({"digests": digests, "times": jobs.times}, indent=1))
    if options.against:
        before = json.loads(options.against.read_text())["digests"]
        for name, found in digests.items():
            for what in found.keys() | before.get(name, {}).keys():
                if found.get(what) != before.get(name, {}).get(what):
                    print(f"differs: {name} {what}: {before.get(name, {}).get(what)} {found.get(what)}")
        print(f"compared {sum(map(len, digests.values()))} digests")


def one_candidate(jobs: Jobs, made: candidates.Candidate, cases: dict[Path, list[Any]]) -> dict[str, str]:
    """Traces it for each case and compiles each specialisation; digests of plans, IR and binaries."""
    source = made.path.read_text()
    digests: dict[str, str] = {}
    specs: list[dict[str, Any]] = []
    for number, signature in enumerate(cases[made.problem]):
        request = {"source": source, "signature": signature, "kernels": kernels_of(source), "calls": []}
        trace = jobs.run("trace", {**request, "target": H200, "max_variants": 64})
        digests[f"trace {number}"] = digest(json.dumps(trace, sort_keys=True).encode())
        for plan in trace["plans"]:
            specs += [spec for spec in plan["kernels"] if spec not in specs]
    module = module_of(source)
    for number, spec in enumerate(specs):
        found = jobs.run("ttir", {"module": module, "spec": spec, "target": H200})
        digests[f"ttir {number}"] = digest(found["ttir"].encode())
        request = {"ttir": strip(found["ttir"]), "spec_options": spec["options"], "target": H200}
        compiled = jobs.run("binary", request)
        digests[f"binary {number}"] = digest(base64.b64decode(compiled["bytes"]))
    return digests


class Jobs:
    """Runs jobs, and adds their times up."""

    def __init__(self, handlers: dict[str, Any]) -> None:
        self.handlers = handlers
        self.times: dict[str, list[tuple[float, float, float, int]]] = collections.defaultdict(list)

    def run(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer of a job in a process of its own. A binary's bytes come with it."""

        def handle(scratch: str) -> dict[str, Any]:
            found = self.handlers[kind].run({**request, "out": scratch}, scratch)
            if "binary" in found:
                found["bytes"] = base64.b64encode(Path(found["binary"]).read_bytes()).decode()
            return found

        found, usage, fork = in_child(handle)
        if "error" in found:
            raise RuntimeError(f"{kind}: {found['error']}")
        self.times[kind].append((fork, usage.ru_utime, usage.ru_stime, usage.ru_minflt))
        return found

    def signatures(self, problem: Path) -> list[dict[str, Any]]:
        """The signature of each case. References do not run."""

        def find(scratch: str) -> list[dict[str, Any]]:
            from tilewright.cell import oracle
            from tilewright.cell.oracle_problem import load, read_source, variants

            request = {"problem": str(problem), "seed": 1, "trials": 1, "regimes": False, "device": "cpu",
                       "max_bytes": 8 << 30}  # fmt: skip
            asked = oracle.Oracle(request, None)  # type: ignore[arg-type]
            source = read_source(str(problem))
            module = load(str(problem), source)
            modules = [("default", module), *((label, load(str(problem), source, changes))
                       for label, changes in variants(module, str(problem)))]  # fmt: skip
            found = []
            for label, module in modules[:CASES]:
                case = asked._case(module, label)
                found.append(asked._signature(case, 2, *asked._inputs(case, 1, 0)))
            return found

        return in_child(find)[0]

    def table(self, count: int) -> str:
        """Milliseconds of each kind of job."""
        lines = [
            "| job | of each candidate | fork ms | user ms | system ms | page faults | ms a candidate |",
            "|---|---|---|---|---|---|---|",
        ]
        total = 0.0
        for kind, times in self.times.items():
            forks, users, systems, faults = (sum(column) for column in zip(*times, strict=True))
            per, all_ms = len(times) / count, 1e3 * (forks + users + systems) / count
            total += all_ms
            lines.append(
                f"| {kind} | {per:.2f} | {1e3 * forks / len(times):.1f} | {1e3 * users / len(times):.1f} "
                f"| {1e3 * systems / len(times):.1f} | {faults / len(times):.0f} | {all_ms:.1f} |"
            )
        return "\n".join([*lines, f"| all | | | | | | {total:.1f} |"])


def in_child(function: Any) -> tuple[Any, Any, float]:
    """The JSON value of `function(scratch)`, computed in a fork; the fork's use of the machine; seconds of forking."""
    read, write = os.pipe()
    with tempfile.TemporaryDirectory() as scratch:
        before = time.process_time()
        pid = os.fork()
        forked = time.process_time() - before
        if pid == 0:
            try:
                os.close(read)
                child.scrub_environment(scratch)
                os.chdir(scratch)
                gc.enable()
                with os.fdopen(write, "w") as pipe:
                    pipe.write(json.dumps(function(scratch)))
                os._exit(0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(1)
        os.close(write)
        with os.fdopen(read) as pipe:
            text = pipe.read()
        _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise RuntimeError(f"a job ended with status {status}")
    return json.loads(text), usage, forked


def kernels_of(source: str) -> list[dict[str, Any]]:
    """Names and lines of the jit functions."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(one).endswith("jit") for one in node.decorator_list):
            found.append({"name": node.name, "line": node.lineno})
    return found


def module_of(source: str) -> str:
    """Imports, constants and functions, without the class: lines stay where they are."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(lines) + "\n"


def strip(ttir: str) -> str:
    """The text without locations, nearly as the binary's job gets it."""
    lines = [line for line in ttir.splitlines(keepends=True) if not line.startswith("#loc")]
    return re.sub(r" loc\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\)", "", "".join(lines))


def digest(data: bytes) -> str:
    """A short one."""
    return hashlib.sha256(data).hexdigest()[:16]


if __name__ == "__main__":
    main()
