"""Times the reference on a GPU, as the clock of the executor times candidates. Trusted code: a part of `resident`.

Questions and answers:

- `{"prepare": NAME}`, one of `BASELINES`: `{"graph": bool, "seconds": float, "nothing_us": float,
  "end_to_end_us": float}`: what events measure around a kernel that does next to nothing, and one of many calls without
  a graph, by the host's clock.
- `{"time": NAME, "calls": n}`: `{"us": [float]}`, device time of each call in microseconds, with a cold cache.
- `{"work": null}`: `{"flops": int, "bytes": int, "least": {"read": int, "written": int, "flops": int}}`, of one call:
  floating operations of its matrix products, convolutions and attentions; bytes of its inputs, weights and outputs,
  each counted once; and what of that no program can leave out (see `least_work`).
- `{"rates": null}`: `{"matmul": {DTYPE: float}, "medians": {NAME: [float]}, "host": {"module", "launch", "step":
  float}}`, operations a second of a large matrix product; median microseconds of the same call, each in fresh memory;
  and what Python's part of a call costs in microseconds (see `host_costs`).

The module runs with torch's own defaults, but without TF32: a candidate must reach the precision of the dtypes as well.
"""

from __future__ import annotations

import functools
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_flatten
from torch.utils.flop_counter import FlopCounterMode

from tilewright.cell import oracle_reference as reference
from tilewright.cell.direct import buffer_dtypes, load_state
from tilewright.cell.host_costs import end_to_end, host_costs, nothing_kernel
from tilewright.cell.least_work import least_work
from tilewright.cell.oracle_problem import load, read_source
from tilewright.cell.oracle_values import decode

BASELINES: dict[str, Callable[[torch.nn.Module], Callable[..., Any]]] = {
    "eager": lambda model: model,
    "compile": lambda model: torch.compile(model, dynamic=False),
    "max-autotune": lambda model: torch.compile(model, dynamic=False, mode="max-autotune-no-cudagraphs"),
}
SETS = 3
"""Sets of inputs that calls take in turn: as many as candidates are timed on (`verify/timing.rs`)."""
PREPARATIONS = 10
"""Times that a call is prepared anew, to see what that changes."""
TURNS = 7
"""Series of calls by each preparation."""
NOTHING_CALLS = 61
"""Calls of the kernel that does nothing."""
WARM_UP = 3
"""Calls before a graph is recorded: compiling, workspaces, choices of algorithms."""
FLUSH_FACTOR = 2
"""The second-level cache is flushed by writing this many times its size."""


class Subject:
    """The reference with its weights, and inputs of several trials."""

    def __init__(self, path: str, device: str, data: dict[str, Any], store: Any) -> None:
        """Of the problem in the file `path`: `data` is its `OracleData`, whose blobs `store` holds on the device."""
        self.device = device
        case = data["cases"][0]
        signature = case["signature"]
        trials = [trial for trial in case["trials"] if trial["regime"] == "seed"][:SETS]
        torch.cuda.set_device(self.device)
        set_defaults()
        module = load(path, read_source(path))
        args = [decode(value, []) for value in signature["init_args"]]
        kwargs = {key: decode(value, []) for key, value in signature["init_kwargs"]}
        self.model: torch.nn.Module = module.Model(*args, **kwargs).to(self.device).train(signature["training"])
        set_defaults()
        load_state(self.model, signature["state"], [store[blob] for blob in trials[0]["state"]])
        dtypes = buffer_dtypes(signature["args"], signature["buffers"])
        self.sets = [
            [store[blob].view(dtype) for blob, dtype in zip(trial["calls"][0]["inputs"], dtypes, strict=True)]
            for trial in trials
        ]
        # Where calls find their inputs: a graph keeps its addresses.
        self.flats = [flat.clone() for flat in self.sets[0]]
        self.args = [decode(value, self.flats) for value in signature["args"]]
        cache = torch.cuda.get_device_properties(self.device).L2_cache_size
        self.flush = torch.empty(FLUSH_FACTOR * cache // 4, dtype=torch.int32, device=self.device)
        self.calls: dict[str, Callable[[], Any]] = {}
        self.direct: dict[str, Callable[[], Any]] = {}
        """The same, as a program calls them."""
        self.count = 0

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to one frame."""
        match question:
            case {"prepare": name}:
                start = time.monotonic()
                graph = self.prepare(name)
                seconds = time.monotonic() - start
                whole = end_to_end(self.direct[name])
                return {"graph": graph, "seconds": seconds, "nothing_us": self.nothing(), "end_to_end_us": whole}
            case {"time": name, "calls": calls}:
                return {"us": self.time(self.calls[name], calls)}
            case {"work": None}:
                return self.work()
            case {"rates": None}:
                rates, host = matmul_rates(self.device), host_costs(self.device)
                return {"matmul": rates, "medians": self.medians(), "host": host}
            case _:
                raise ValueError(f"an unknown question: {question}")

    @torch.no_grad()
    def prepare(self, name: str) -> bool:
        """Make a baseline ready to be called. Whether as a graph: what waits for the device cannot be recorded."""
        call = BASELINES[name](self.model)
        self.direct[name] = torch.no_grad()(lambda: call(*self.args))
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self.restore(0)
                call(*self.args)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                call(*self.args)
        except Exception:
            torch.cuda.synchronize()
            self.calls[name] = self.direct[name]
            return False
        self.calls[name] = graph.replay
        return True

    def restore(self, number: int) -> None:
        """Put the inputs of a set where calls find them."""
        for flat, fresh in zip(self.flats, self.sets[number], strict=True):
            flat.copy_(fresh)

    def time(self, call: Callable[[], Any], calls: int) -> list[float]:
        """Device time of some calls with a cold cache, all put into the stream before the first is waited for."""
        events = []
        # Enough to do that all calls lie in the stream before the device comes to the first: it never waits for the
        # host between an event and the work behind it.
        for number in range(calls):
            self.flush.fill_(number)
        for _ in range(calls):
            self.restore(self.count % len(self.sets))
            self.count += 1
            self.flush.fill_(self.count)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            events.append((start, end))
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in events]

    def nothing(self) -> float:
        """What events measure around a kernel that does nothing: the cost of measuring."""
        one = torch.zeros(1, device=self.device)
        graph = recorded(lambda: nothing_kernel[(1,)](one))
        self.time(graph.replay, NOTHING_CALLS)
        return statistics.median(self.time(graph.replay, NOTHING_CALLS))

    @torch.no_grad()
    def medians(self) -> dict[str, list[float]]:
        """How much the time of a call depends on where its memory lies: medians of two calls, each in fresh memory. All
        are prepared first and then timed in turns, so that what drifts meanwhile hits all alike."""
        prepared: dict[str, list[torch.cuda.CUDAGraph]] = {"product": [], "addition": []}
        rng = random.Random(0)
        kept = []
        for _ in range(PREPARATIONS):
            # Gaps between the memory of one and the next.
            kept.append(torch.empty(rng.randrange(1, 32) << 20, dtype=torch.uint8, device=self.device))
            a, b, c = (torch.randn(2048, 2048, device=self.device).half() for _ in range(3))
            x, y, z = (torch.randn(4 << 20, device=self.device) for _ in range(3))
            kept += [a, b, c, x, y, z]
            prepared["product"].append(recorded(functools.partial(torch.mm, a, b, out=c)))
            prepared["addition"].append(recorded(functools.partial(torch.add, x, y, out=z)))
        return {name: self.in_turns(graphs) for name, graphs in prepared.items()}

    def in_turns(self, graphs: list[torch.cuda.CUDAGraph]) -> list[float]:
        """Median time of each of some calls: of the medians of series that take turns."""
        series: list[list[float]] = [[] for _ in graphs]
        for _ in range(TURNS):
            for graph, medians in zip(graphs, series, strict=True):
                medians.append(statistics.median(self.time(graph.replay, 31)))
        return [statistics.median(medians) for medians in series]

    @torch.no_grad()
    def work(self) -> dict[str, Any]:
        """Floating operations and least bytes of one call."""
        self.restore(0)
        with FlopCounterMode(display=False) as counter:
            output = self.model(*self.args)
        tensors = [leaf for leaf in tree_flatten(output)[0] if isinstance(leaf, torch.Tensor)]
        storages = {
            tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
            for tensor in (*self.flats, *reference.state_of(self.model).values(), *tensors)
        }
        tensors = [*self.flats, *reference.state_of(self.model).values()]
        self.restore(0)
        least = least_work(lambda: self.model(*self.args), tensors)
        return {"flops": counter.get_total_flops(), "bytes": sum(storages.values()), "least": least}


def recorded(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """A call as a graph."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def set_defaults() -> None:
    """Torch's own defaults, but for TF32. A problem's file may set them too, so it is done after loading one."""
    torch.set_default_dtype(torch.float32)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = False
    torch.use_deterministic_algorithms(False)
    torch.set_grad_enabled(True)


def matmul_rates(device: str) -> dict[str, float]:
    """Operations a second of a large matrix product in each dtype: the best of some calls."""
    size, rates = 8192, {}
    for name in ("float16", "bfloat16", "float32"):
        a, b = (torch.randn(size, size, dtype=getattr(torch, name), device=device) for _ in range(2))
        torch.matmul(a, b)
        best = float("inf")
        for _ in range(5):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            torch.matmul(a, b)
            end.record()
            torch.cuda.synchronize()
            best = min(best, start.elapsed_time(end) * 1e-3)
        rates[name] = 2.0 * size**3 / best
    return rates
