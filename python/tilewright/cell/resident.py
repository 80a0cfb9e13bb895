"""Handler `resident`: the oracle on a GPU, in a process that stays and keeps its data there. Trusted code.

Request: as for `oracle`, with `socket: path`, `seconds` that making the data may take, and `profiles` that results will
be compared under. The job listens on `socket`, takes one connection, and sends the oracle's response as the first frame
(see `channel`). Then it answers frames until the connection is closed:

- `{"read": Blob}`: `{"nbytes": n}`, and behind that frame the bytes.
- `{"places": [Blob]}`: `{"handles": [[int]], "places": [[handle, offset]]}`, where inputs and weights lie in memory
  that another process may map.
- `{"equip": [{name, image: hex, entry, threads, shared}]}`: `{}`; kernels to compare with (`fused`).
- `{"compare": …}`: see `Keeper.compare`.
- what `baseline` answers.

What goes wrong in one of them is answered with `{"error": str}`. Response at the end: `{}`.

Expected results lie in torch's memory, which is never given out. Inputs and weights lie in allocations that hold
nothing else (`device_memory`).
"""

from __future__ import annotations

import faulthandler
import gc
import os
import socket
import time
from typing import Any

import torch

from tilewright.cell import channel, fused, oracle, scan
from tilewright.cell.baseline import Subject, set_defaults
from tilewright.cell.device_memory import Mapping, Slab
from tilewright.cell.oracle_problem import describe
from tilewright.cell.oracle_reference import equal_bits
from tilewright.cell.oracle_values import NAMES, raw_bytes

SLAB = 16 << 20
"""Bytes of the first allocation for inputs, unless one of them is larger; each next one has twice as many."""
LARGEST_SLAB = 1 << 30
PIECE = 64 << 20
"""Bytes that are sent at a time."""
SHARE = 0.9
"""Of the GPU's free memory, what a problem may take while its data are made."""
LARGE = 1 << 30
"""Bytes that torch's allocator does not keep for later."""
KEPT = 16
"""First runs that wait for their second one, at most: more than candidates that are on a GPU at a time."""
ALIKE = 1e-4
"""Squares of differences between two runs, over squares of values, that the order of float atomics explains."""


class Store:
    """Tensors on a device, named by blobs of a data file that does not exist."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.slabs: list[Slab] = []
        self.tensors: dict[int, torch.Tensor] = {}
        self.shared: dict[int, tuple[int, int]] = {}
        """Slab and offset of what other processes may map."""
        self._end = 0

    def write(self, tensor: torch.Tensor) -> dict[str, int]:
        """Keep a copy of a tensor's elements in logical order; the `Blob` that stands for it."""
        raw = raw_bytes(tensor)
        kept = torch.empty(raw.numel(), dtype=torch.uint8, device=self.device)
        kept.copy_(raw)
        return self._name(kept)

    def share(self, tensor: torch.Tensor) -> dict[str, int]:
        """The same, where other processes may map it."""
        raw = raw_bytes(tensor)
        place = self.slabs[-1].take(raw.numel()) if self.slabs else None
        if place is None:
            # Few, since another process maps and unmaps each that it needs.
            usual = min(SLAB << len(self.slabs), LARGEST_SLAB)
            self.slabs.append(Slab(max(raw.numel(), usual), self.device))
            place = self.slabs[-1].take(raw.numel())
            assert place is not None, "a new slab is large enough"
        offset, kept = place
        kept.copy_(raw)
        blob = self._name(kept)
        self.shared[blob["offset"]] = (len(self.slabs) - 1, offset)
        return blob

    def _name(self, kept: torch.Tensor) -> dict[str, int]:
        # Every blob has an offset of its own, one without bytes too.
        offset = self._end
        self._end = -(-(offset + max(kept.numel(), 1)) // 64) * 64
        self.tensors[offset] = kept
        return {"offset": offset, "nbytes": kept.numel()}

    def __getitem__(self, blob: dict[str, int]) -> torch.Tensor:
        return self.tensors[blob["offset"]]


def run(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """Handle one job: serve until the other end is closed; `scratch` is not used."""
    del scratch
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(request["socket"])
        listener.listen(1)
        connection, _ = listener.accept()
    os.unlink(request["socket"])
    with connection:
        serve(connection.fileno(), request)
    return {}


def serve(fd: int, request: dict[str, Any]) -> None:
    """Make the data, then answer frames until the other end is closed."""
    store = Store(request["device"])
    # A problem that hangs in a call of C would not see a signal.
    faulthandler.dump_traceback_later(request["seconds"], exit=True)
    if store.device.startswith("cuda"):
        request["max_bytes"] = int(SHARE * torch.cuda.mem_get_info(store.device)[0])
    answer = oracle.answer(request, oracle.Oracle, store)
    if "error" in answer:
        channel.send_frame(fd, answer)
        return
    keeper = Keeper(request, answer, store)
    keeper.warm(request["profiles"])
    faulthandler.cancel_dump_traceback_later()
    # From here on the GPU may be somebody's own: nothing is computed that was not asked for.
    channel.send_frame(fd, answer)
    while True:
        try:
            question = channel.receive_frame(fd)
        except EOFError:
            return
        try:
            reply, tail = keeper.answer(question)
        except Exception as error:
            reply, tail = {"error": describe(error, request["problem"])}, None
            if not works(store.device):
                # Nothing more can be had from this process: whoever asks next should see that it has ended.
                channel.send_frame(fd, reply)
                return
        channel.send_frame(fd, reply)
        if tail is not None:
            send_bytes(fd, tail)


def works(device: str) -> bool:
    """Whether the context on the GPU has survived an error."""
    try:
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)
    except Exception:
        return False
    return True


def send_bytes(fd: int, tensor: torch.Tensor) -> None:
    """Send the bytes of a flat tensor, in pieces."""
    for piece in tensor.split(PIECE):
        left = memoryview(piece.cpu().numpy())
        while left:
            left = left[os.write(fd, left) :]


class Keeper:
    """Holds a problem's data and answers for them."""

    def __init__(self, request: dict[str, Any], data: dict[str, Any], store: Store) -> None:
        self.request, self.data, self.store = request, data, store
        self.device: str = request["device"]
        self.subject: Subject | None = None
        self.references: dict[Any, scan.Reference] = {}
        self.kept: dict[int, tuple[list[torch.Tensor], list[Any]]] = {}
        """By who asked: results of a first run, and their figures."""
        self.kernels: dict[str, fused.Launch] = {}
        set_defaults()
        free(self.device)

    @torch.no_grad()
    def warm(self, profiles: list[dict[str, Any]]) -> None:
        """Read the expected results of all calls once, and compare some with themselves: what is read and loaded for
        that is there when the first candidate comes."""
        if self.data["stochastic"]:
            return
        seen = set()
        for doc in (doc for call in self._calls() for doc in call["expected"]["tensors"]):
            native = self.store[doc["native"]].view(NAMES[doc["dtype"]])
            if not native.is_floating_point() or native.numel() < scan.SHORT:
                continue
            float64 = None if doc["float64"] is None else self.store[doc["float64"]].view(torch.float64)
            for profile in profiles:
                reference = self._reference(doc, native, float64, profile)
                if (key := (native.dtype, native.numel(), profile["name"])) not in seen:
                    seen.add(key)
                    scan.scan(reference, native, profile)
        free(self.device)

    def _calls(self) -> list[dict[str, Any]]:
        return [call for case in self.data["cases"] for trial in case["trials"] for call in trial["calls"]]

    def answer(self, question: dict[str, Any]) -> tuple[dict[str, Any], torch.Tensor | None]:
        """The answer to one frame, and what is sent behind it."""
        match question:
            case {"read": blob}:
                tensor = self.store[blob]
                return {"nbytes": tensor.numel()}, tensor
            case {"places": blobs}:
                return self.places(blobs), None
            case {"equip": kernels}:
                self.kernels = {doc["name"]: fused.Loaded(doc) for doc in kernels}
                return {}, None
            case {"compare": request}:
                with torch.no_grad():
                    return self.compare(request), None
            case _:
                if self.subject is None:
                    self.subject = Subject(self.request["problem"], self.device, self.data, self.store)
                return self.subject.answer(question), None

    def places(self, blobs: list[dict[str, int]]) -> dict[str, Any]:
        """Where blobs lie that other processes may map."""
        places = [self.store.shared[blob["offset"]] for blob in blobs]
        slabs = sorted({slab for slab, _ in places})
        handles = [self.store.slabs[slab].handle for slab in slabs]
        return {"handles": handles, "places": [[slabs.index(slab), offset] for slab, offset in places]}

    def compare(self, request: dict[str, Any]) -> dict[str, Any]:
        """What calls left behind in another process's memory, against what it should be.

        Request: `{who, handle, nbytes, profiles: [[Profile]], looks: [{tensors: [{native: Blob, float64: Blob | null,
        dtype, shape, strides, offset, exact: [bool]}], unchanged: [[Blob, offset]], profiles, remember, again}]}`;
        offsets are bytes from the start of the memory, strides are elements; `profiles` of a look names one of the
        lists, and `exact` says for each of its profiles whether every bit must be equal.

        Answer: `{looks: [{unchanged: [bool], tensors: [Figures]}], spent: {NAME: microseconds}}`; each of `Figures` is
        `{bytes: [int]}` for a floating tensor of few elements, else `{figures: [for each profile]}`. With `remember`,
        the next look is at a second run of the same call, and has `again`: `same` is then `equal`, `close` or `other`.
        """
        start, much = time.monotonic(), self._keeps_much()
        with Mapping(request["handle"], request["nbytes"], self.device) as memory:
            mapped = time.monotonic()
            looks = self.look_all(memory, request)
            looked = time.monotonic()
            # The mapping ends here, and with it every tensor over it.
            del memory
        end = time.monotonic()
        if much or self._keeps_much():
            free(self.device)
        parts = {"map": mapped - start, "look": looked - mapped, "unmap": end - looked}
        return {"looks": looks, "spent": {name: int(seconds * 1e6) for name, seconds in parts.items()}}

    def look_all(self, memory: torch.Tensor, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Compare what lies in this memory, call by call."""
        first, figures = self.kept.pop(request["who"], ([], []))
        # Who has much is alone on the GPU: it has given up.
        self.kept = {who: kept for who, kept in self.kept.items() if _nbytes(kept[0]) <= LARGE}
        comparison, asked = fused.Comparison(self.kernels, self.device), []
        for look in request["looks"]:
            profiles = request["profiles"][look["profiles"]]
            tensors = [_view(memory, tensor) for tensor in look["tensors"]]
            kept = [(memory[offset : offset + blob["nbytes"]], self.store[blob]) for blob, offset in look["unchanged"]]
            unchanged = [comparison.equal(*pair) for pair in kept]
            same = _same(comparison, first, tensors) if look["again"] else None
            later = None if same else self._ask(comparison, look, tensors, profiles)
            asked.append((look, tensors, profiles, unchanged, same, later))
            first = tensors if look["remember"] else []
        comparison.run()
        answers = []
        for look, tensors, profiles, unchanged, same, later in asked:
            answer: dict[str, Any] = {"unchanged": [ask() for ask in unchanged]}
            if same is not None:
                answer["same"] = same()
                if answer["same"] != "equal":
                    # It is judged, too.
                    comparison = fused.Comparison(self.kernels, self.device)
                    later = self._ask(comparison, look, tensors, profiles)
                    comparison.run()
            figures = figures if later is None else [ask() for ask in later]
            answers.append({**answer, "tensors": figures})
        # The second run of a call may come in other memory.
        if first:
            self.kept[request["who"]] = [tensor.clone() for tensor in first], figures
        while len(self.kept) > KEPT:
            # Whoever it was for did not come back.
            del self.kept[next(iter(self.kept))]
        return answers

    def _keeps_much(self) -> bool:
        return any(_nbytes(first) > LARGE for first, _ in self.kept.values())

    def _ask(
        self,
        comparison: fused.Comparison,
        look: dict[str, Any],
        tensors: list[torch.Tensor],
        profiles: list[dict[str, Any]],
    ) -> list[fused.Later]:
        """Figures of what a call left."""
        pairs = zip(look["tensors"], tensors, strict=True)
        return [self._figures(comparison, doc, tensor, profiles) for doc, tensor in pairs]

    def _figures(
        self, comparison: fused.Comparison, doc: dict[str, Any], got: torch.Tensor, profiles: list[dict[str, Any]]
    ) -> fused.Later:
        flat = got.reshape(-1)
        if got.is_floating_point() and got.numel() < scan.SHORT:
            read = comparison.read(raw_bytes(got))
            return lambda: {"bytes": read()}
        native = self.store[doc["native"]].view(NAMES[doc["dtype"]])
        float64 = None if doc["float64"] is None else self.store[doc["float64"]].view(torch.float64)
        later = []
        for profile, exact in zip(profiles, doc["exact"], strict=True):
            if exact:
                later.append(comparison.exact(native, flat, float64))
            else:
                later.append(comparison.figures(self._reference(doc, native, float64, profile), flat, profile))
        return lambda: {"figures": [ask() for ask in later]}

    def _reference(
        self, doc: dict[str, Any], native: torch.Tensor, float64: torch.Tensor | None, profile: dict[str, Any]
    ) -> scan.Reference:
        grouped = profile["rule"] == "scaled_rms"
        key = (doc["native"]["offset"], profile["golden"], grouped)
        if key not in self.references:
            self.references[key] = scan.Reference(native, float64, doc["shape"], profile["golden"], grouped)
        return self.references[key]


def _nbytes(tensors: list[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _same(comparison: fused.Comparison, first: list[torch.Tensor], second: list[torch.Tensor]) -> fused.Later:
    """How the results of two runs of one call differ."""
    if len(first) != len(second):
        return lambda: "other"
    pairs = list(zip(first, second, strict=True))
    equal = [comparison.equal(raw_bytes(a), raw_bytes(b)) for a, b in pairs]

    def same() -> str:
        if all(ask() for ask in equal):
            return "equal"
        return "close" if all(close(a, b) for a, b in pairs) else "other"

    return same


def free(device: str) -> None:
    """Give memory back that only torch's allocator holds, for the process that runs candidates."""
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()


def close(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two results differ by no more than the order of float atomics explains. As `alike` in verify."""
    if not first.is_floating_point():
        return equal_bits(raw_bytes(first), raw_bytes(second))
    difference = size = 0.0
    for a, b in zip(first.reshape(-1).split(scan.CHUNK), second.reshape(-1).split(scan.CHUNK), strict=True):
        a, b = a.double(), b.double()
        both = a.isfinite() & b.isfinite()
        if not bool((both | (a == b) | (a.isnan() & b.isnan())).all()):
            return False
        difference += (a - b).square().where(both, 0.0).sum().item()
        size += a.square().where(both, 0.0).sum().item()
    return difference <= ALIKE * size


def _view(memory: torch.Tensor, doc: dict[str, Any]) -> torch.Tensor:
    """A tensor as it lies in memory. Bools as bytes: a kernel may store any."""
    dtype = NAMES[doc["dtype"]]
    dtype = torch.uint8 if dtype == torch.bool else dtype
    if 0 in doc["shape"]:
        return torch.empty(doc["shape"], dtype=dtype, device=memory.device)
    size, offset = dtype.itemsize, doc["offset"]
    whole = memory[offset : offset + (memory.numel() - offset) // size * size].view(dtype)
    return whole.as_strided(doc["shape"], doc["strides"])
