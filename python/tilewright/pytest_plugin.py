"""pytest plugin: a test-suite for Triton kernels, run by the emulator on a machine without a GPU.

`pytest --triton-emulate` turns the emulator on before the first conftest is imported, so that what test files decide at
import (`torch.cuda.is_available()`) is decided as on a machine with a GPU. The fixture `tilewright_emulate` turns it on
for single tests instead.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .emulation.context import Emulation

_OPTIONS = (
    ("target", "sm_90", "GPU architecture that kernels are compiled for"),
    ("on-fault", "raise", "what a fault of a kernel does: raise, warn or ignore"),
    ("unsupported", "fail", "what becomes of a test whose kernel the emulator does not execute: fail or skip"),
    ("autotune", "first", "configurations of autotuned kernels that are run: first or all"),
    ("timeout", "", "seconds that one launch may take"),
    ("report", "", "file for a JSON line for each test"),
)
_KEY = pytest.StashKey["Session"]()
_COUNTS = ("totals", "kernels", "findings", "refused")


@dataclass
class Session:
    """The emulation of a whole run, and what its tests did."""

    emulation: Emulation
    unsupported: str
    report: str
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tilewright", "Triton kernels in an emulator")
    group.addoption("--triton-emulate", action="store_true", help="run Triton kernels in Tilewright's emulator")
    parser.addini("triton_emulate", "run Triton kernels in Tilewright's emulator", type="bool", default=False)
    for name, default, what in _OPTIONS:
        group.addoption(f"--triton-emulate-{name}", default=None, help=f"{what} (default: {default or 'none'})")
        parser.addini(f"triton_emulate_{name.replace('-', '_')}", what, default=default)


def _option(config: pytest.Config, name: str) -> str:
    name = f"triton_emulate_{name.replace('-', '_')}"
    # Before conftests are loaded, only this is parsed.
    given = getattr(config.known_args_namespace, name)
    return config.getini(name) if given is None else given


def _emulation(config: pytest.Config, cuda: bool) -> Emulation:
    from .emulation.context import Emulation

    timeout = _option(config, "timeout")
    return Emulation(
        target=_option(config, "target"),
        cuda=cuda,
        on_fault=_option(config, "on-fault"),
        autotune=_option(config, "autotune"),
        timeout=float(timeout) if timeout else None,
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    if not (early_config.known_args_namespace.triton_emulate or early_config.getini("triton_emulate")):
        return
    try:
        emulation = _emulation(early_config, cuda=True)
    except ValueError as error:
        raise pytest.UsageError(f"--triton-emulate: {error}") from None
    session = Session(emulation, _option(early_config, "unsupported"), _option(early_config, "report"))
    early_config.stash[_KEY] = session
    emulation.__enter__()
    early_config.add_cleanup(lambda: emulation.__exit__(None, None, None))


@pytest.fixture
def tilewright_emulate(request: pytest.FixtureRequest) -> Iterator[Emulation]:
    """An emulation that is on for the test; with `--triton-emulate`, the one that is on already."""
    session = request.config.stash.get(_KEY, None)
    if session is not None:
        yield session.emulation
        return
    with _emulation(request.config, cuda=True) as emulation:
        yield emulation


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Each test has a record of its own."""
    session = item.config.stash.get(_KEY, None)
    if session is None:
        return (yield)
    from .emulation.context import Record

    record = session.emulation.record = Record()
    test = session.tests[item.nodeid] = {"test": item.nodeid, "outcome": "", "seconds": 0.0, "why": ""}
    try:
        return (yield)
    finally:
        _settle(session, test, record)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    report = yield
    session = item.config.stash.get(_KEY, None)
    if session is None:
        return report
    refused = session.emulation.record.unsupported
    if report.failed and refused and session.unsupported == "skip":
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {str(refused[0]).splitlines()[0]}")
    test = session.tests[item.nodeid]
    test["seconds"] = round(test["seconds"] + call.duration, 3)
    if report.when == "call" or not report.passed:
        test["outcome"] = report.outcome if not hasattr(report, "wasxfail") else f"x{report.outcome}"
        if not report.passed:
            test["why"] = _why(report, call)
    return report


def _why(report: Any, call: pytest.CallInfo[None]) -> str:
    if call.excinfo is None or (report.skipped and isinstance(report.longrepr, tuple)):
        return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
    return f"{call.excinfo.typename}: {str(call.excinfo.value)[:2000]}"


def _settle(session: Session, test: dict[str, Any], record: Any) -> None:
    """Counts what a test did, and writes it down."""
    test["launches"] = dict(record.launches)
    test["faults"] = [{"kind": it.kind, "kernel": it.kernel, "line": it.line} for it in record.faults]
    test["unsupported"] = [{"operation": it.operation, "kernel": it.kernel, "why": it.why} for it in record.unsupported]
    session.kernels.update(record.launches)
    session.findings.update(_at(it, it.kind) for it in record.faults)
    session.refused.update(_at(it, it.operation) for it in record.unsupported)
    session.totals["tests"] += 1
    session.totals["with launches"] += bool(record.launches)
    if session.report:
        with Path(session.report).open("a", encoding="utf-8") as file:
            file.write(json.dumps(test) + "\n")


def _at(it: Any, what: str) -> str:
    return f"{what} in {it.kernel} ({Path(it.file).name}:{it.line})"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands its counts to the session that started it."""
    here = session.config.stash.get(_KEY, None)
    if here is not None and hasattr(session.config, "workeroutput"):
        session.config.workeroutput["tilewright"] = {name: dict(getattr(here, name)) for name in _COUNTS}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    here = node.config.stash.get(_KEY, None)
    if here is not None:
        for name, counts in getattr(node, "workeroutput", {}).get("tilewright", {}).items():
            getattr(here, name).update(counts)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session = config.stash.get(_KEY, None)
    if session is None:
        return
    write = terminalreporter.write_line
    terminalreporter.section("Triton kernels in the emulator")
    write(
        f"{session.totals['with launches']} of {session.totals['tests']} tests launched kernels:"
        f" {len(session.kernels)} kernels, {session.kernels.total()} launches"
    )
    for title, counts in (("findings", session.findings), ("not supported", session.refused)):
        for what, times in counts.most_common(50):
            write(f"{title}: {what}, {times} times" if times > 1 else f"{title}: {what}")
