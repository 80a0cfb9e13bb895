"""Times the reference on a GPU, as the clock of the executor times candidates. Trusted code: a part of `resident`.

Questions and answers:

- `{"prepare": NAME}`, one of `BASELINES`: `{"graph": bool, "seconds": float, "end_to_end_us": float}`: one of many
  calls without a graph, by the host's clock.
- `{"time": NAME, "calls": n}`: `{"us": [float]}`, device time of each call in microseconds, with a cold cache. The next
  question finds the inputs and results elsewhere in memory: where they lie is part of what times differ by.
- `{"work": null}`: `{"flops": int, "bytes": int, "least": {"read": int, "written": int, "flops": int}}`, of one call:
  floating operations of its matrix products, convolutions and attentions; bytes of its inputs, weights and outputs,
  each counted once; and what of that no program can leave out (see `least_work`).
- `{"rates": null}`: `{"matmul": {DTYPE: float}, "host": {"module", "launch", "step": float}}`, operations a second of a
  large matrix product, and what Python's part of a call costs in microseconds (see `host_costs`).

The module runs with torch's own defaults, but without TF32: a candidate must reach the precision of the dtypes as well.
"""

from __future__ import annotations

import contextlib
import functools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_flatten
from torch.utils.flop_counter import FlopCounterMode

from tilewright.cell import gradients
from tilewright.cell import oracle_reference as reference
from tilewright.cell.device_memory import tensor_at
from tilewright.cell.direct import buffer_dtypes, load_state
from tilewright.cell.host_costs import end_to_end, host_costs
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
PLACES = 8
"""Places in memory that blocks of calls take in turn."""
PLACES_BYTES = 8 << 30
"""Memory that these may take together; of a larger problem there are fewer."""
ROOM = 16 << 20
"""Bytes in which the inputs of a place are moved, as `ROOM` in `replay/src/cuda/clock.rs`."""
STEP = 512
"""Steps in which they are moved: what torch's allocator aligns to."""
HOLD = 1.2
"""How long the device is kept waiting for calls, as a multiple of what putting the last ones into the stream took."""
MOST_SECONDS = 1e-4
"""A call that takes longer to be put into the stream waits for the device itself, or the host was held up."""
CYCLES = 2e9
"""Cycles a second of the fastest multiprocessor."""
WARM_UP = 3
"""Calls before a graph is recorded: compiling, workspaces, choices of algorithms."""
FLUSH_FACTOR = 2
"""The second-level cache is flushed by writing this many times its size."""


@dataclass
class Place:
    """Where calls find their inputs: a graph keeps its addresses."""

    flats: list[torch.Tensor]
    args: list[Any]
    memory: list[torch.Tensor]
    """What the inputs lie in."""
    fresh: list[Callable[[], Any]] = field(default_factory=list)
    """For each set: puts it there and flushes the cache."""


class _NoModules(contextlib.nullcontext):  # type: ignore[type-arg]
    """All modules counted as one: telling them apart takes hooks that `autograd.grad` does not stand."""

    parents = frozenset({"Global"})


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
        self.gradients: gradients.Spec | None = signature["gradients"]
        set_defaults()
        load_state(self.model, signature["state"], [store[blob] for blob in trials[0]["state"]])
        dtypes = buffer_dtypes(signature["args"], signature["buffers"])
        self.sets = [
            [store[blob].view(dtype) for blob, dtype in zip(trial["calls"][0]["inputs"], dtypes, strict=True)]
            for trial in trials
        ]
        self.signature = signature["args"]
        self.rng = random.Random()
        flats = [flat.clone() for flat in self.sets[0]]
        self.places = [Place(flats, [decode(value, flats) for value in self.signature], flats)]
        cache = torch.cuda.get_device_properties(self.device).L2_cache_size
        self.flush = torch.empty(FLUSH_FACTOR * cache // 4, dtype=torch.int32, device=self.device)
        self.calls: dict[str, list[Callable[[], Any]]] = {}
        """Of each baseline, one for each place."""
        self.direct: dict[str, Callable[[], Any]] = {}
        """The same, as a program calls them."""
        self.count = self.turn = 0
        self.events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self.seconds = MOST_SECONDS
        """What putting one call into the stream took lately."""

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to one frame."""
        match question:
            case {"prepare": name}:
                start = time.monotonic()
                graph = self.prepare(name)
                seconds = time.monotonic() - start
                whole = end_to_end(self.direct[name])
                return {"graph": graph, "seconds": seconds, "end_to_end_us": whole}
            case {"time": name, "calls": calls}:
                self.turn += 1
                number = self.turn % len(self.calls[name])
                return {"us": self.time(self.calls[name][number], calls, self.places[number])}
            case {"work": None}:
                return self.work()
            case {"rates": None}:
                rates, host = matmul_rates(self.device), host_costs(self.device)
                return {"matmul": rates, "host": host}
            case _:
                raise ValueError(f"an unknown question: {question}")

    def differentiated(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, a way to run the module, with its backward pass where the problem asks for gradients."""
        return gradients.differentiated(call, self.model, self.gradients)

    def place(self) -> Place:
        """Fresh memory for the inputs, each moved by a random step: of a storage of its own, since views count from its
        start and compiled code asks which inputs share one."""
        memory, flats = [], []
        for flat in self.sets[0]:
            gap = self.rng.randrange(ROOM // STEP) * STEP
            memory.append(torch.empty(flat.nbytes + gap, dtype=torch.uint8, device=self.device))
            moved = tensor_at(memory[-1].data_ptr() + gap, flat.nbytes, self.device)
            flats.append(moved.view(flat.dtype).copy_(flat))
        return Place(flats, [decode(value, flats) for value in self.signature], memory)

    @torch.no_grad()
    def prepare(self, name: str) -> bool:
        """Make a baseline ready to be called. Whether as graphs: what waits for the device cannot be recorded."""
        call = self.differentiated(BASELINES[name](self.model))
        first = self.places[0]
        self.direct[name] = torch.no_grad()(lambda: call(*first.args))
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self.restore(0, first)
                call(*first.args)
        stream.synchronize()
        self.find_places(call)
        graphs = []
        try:
            for place in self.places:
                with torch.cuda.stream(stream):
                    call(*place.args)
                stream.synchronize()
                graphs.append(torch.cuda.CUDAGraph())
                with torch.cuda.graph(graphs[-1], stream=stream):
                    call(*place.args)
        except Exception:
            torch.cuda.synchronize()
            direct = [lambda args=place.args: call(*args) for place in self.places]
            self.calls[name] = [torch.no_grad()(call) for call in direct]
            return False
        self.calls[name] = [graph.replay for graph in graphs]
        return True

    def find_places(self, call: Callable[..., Any]) -> None:
        """As many places as are wanted and memory is meant for, by what a call takes; the first baseline's are kept."""
        if self.places[0].fresh:
            return
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        call(*self.places[0].args)
        own = torch.cuda.max_memory_allocated(self.device) - before
        bytes_each = own + sum(flat.nbytes + ROOM for flat in self.places[0].flats)
        wanted = min(PLACES, PLACES_BYTES // max(bytes_each, 1))
        while len(self.places) < wanted:
            self.places.append(self.place())
        for place in self.places:
            sets = range(len(self.sets))
            place.fresh = [recorded(functools.partial(self.freshen, number, place)).replay for number in sets]

    def freshen(self, number: int, place: Place) -> None:
        """Put the inputs of a set where calls find them, and leave nothing of them in the second-level cache."""
        self.restore(number, place)
        self.flush.fill_(number)

    def restore(self, number: int, place: Place) -> None:
        """Put the inputs of a set where calls find them."""
        for flat, fresh in zip(place.flats, self.sets[number], strict=True):
            flat.copy_(fresh)

    def time(self, call: Callable[[], Any], calls: int, place: Place) -> list[float]:
        """Device time of some calls with a cold cache.

        The device waits until all are put into the stream: what events measure varies more while the host still works
        on it.
        """
        while len(self.events) < calls:
            self.events.append((torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)))
        torch.cuda._sleep(int(HOLD * self.seconds * calls * CYCLES))
        began = time.perf_counter()
        for start, end in self.events[:calls]:
            place.fresh[self.count % len(self.sets)]()
            self.count += 1
            start.record()
            call()
            end.record()
        self.seconds = min((time.perf_counter() - began) / calls, MOST_SECONDS)
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in self.events[:calls]]

    @torch.no_grad()
    def work(self) -> dict[str, Any]:
        """Floating operations and least bytes of one call."""
        first, call = self.places[0], self.differentiated(self.model)
        self.restore(0, first)
        counter = FlopCounterMode(display=False)
        counter.mod_tracker = _NoModules()
        with counter:
            output = call(*first.args)
        tensors = [leaf for leaf in tree_flatten(output)[0] if isinstance(leaf, torch.Tensor)]
        storages = {
            tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
            for tensor in (*first.flats, *reference.state_of(self.model).values(), *tensors)
        }
        tensors = [*first.flats, *reference.state_of(self.model).values()]
        self.restore(0, first)
        least = least_work(lambda: call(*first.args), tensors)
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
