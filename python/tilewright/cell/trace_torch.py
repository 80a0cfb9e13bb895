"""What torch answers while a candidate is traced: `torch.cuda` as on the target, and fake tensors that behave.

Everything here changes the process for good, so it is called only in a job's own forked child.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
import torch._subclasses.fake_tensor as fake_tensor
from torch._library.triton import wrap_triton_enabled

from . import trace_conditions, trace_fake
from .trace_device import Card, DeviceProperties
from .trace_record import Recorder, TraceEnd
from .trace_seal import held, hold, sealed

if TYPE_CHECKING:
    from .trace import Session


_SCATTER = 0x9E3779B97F4A7C10
"""Times a small number: numbers that seem drawn by chance."""


class Streams:
    """Which stream is current, and whether work on side streams is ordered against the default stream.

    The rule is simple: a side stream must wait for the default stream before its first step and after any later step
    of the default stream, and the default stream (or the host) must wait for it in the end.
    """

    def __init__(self) -> None:
        self.handle = 0
        """Of the current stream: another than the default stream's where the caller has a stream of its own."""
        self.capturing = False
        """Whether the caller captures a CUDA graph."""
        self.card: Card
        self.default = Stream(self, 0)
        self.current = self.default
        self.legacy = Stream(self, 0)
        """CUDA's own default stream, where that is not the caller's."""
        self._joined: set[int] = set()
        self._pending: dict[int, int] = {}
        self._count = 0

    def reset(self) -> None:
        self.current = self.default
        self._joined.clear()
        self._pending.clear()

    def new(self) -> Stream:
        self._count += 1
        return Stream(self, self._count)

    def note(self, rec: Recorder, line: int) -> None:
        """A step is recorded under the current stream."""
        index = held(self.current).index
        if index == 0:
            self._joined.clear()
        elif index in self._joined:
            self._pending[index] = line
        else:
            _side_stream(rec, line, "runs on a side stream that does not wait for the default stream")

    def order(self, waiting: int, finished: int) -> None:
        """Stream `waiting` waits for all work so far of stream `finished`."""
        if finished == 0:
            self._joined.add(waiting)
        if waiting == 0:
            self._pending.pop(finished, None)

    def finish(self, rec: Recorder) -> None:
        """`forward` returned: nothing may still be running elsewhere."""
        for line in self._pending.values():
            _side_stream(rec, line, "runs on a side stream that nothing waits for")
        if held(self.current).index != 0:
            _side_stream(rec, None, "forward leaves a side stream as the current stream")

    def synchronize(self) -> None:
        self._pending.clear()


def _side_stream(rec: Recorder, line: int | None, message: str) -> None:
    rec.find(
        "side-stream",
        "proof",
        message,
        line,
        help="Launch on the current stream, or order the streams with wait_stream in both directions.",
    )


@dataclass
class _Mark:
    """What an event stands for: the stream that it was recorded on."""

    index: int = 0


class Event:
    """Stands for `torch.cuda.Event`: keeps the order of streams, has no times."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        hold(self, _Mark())
        self.cuda_event = 0

    def record(self, stream: Stream | None = None) -> None:
        held(self).index = held(stream or torch.cuda.current_stream()).index

    def wait(self, stream: Stream | None = None) -> None:
        place = held(stream or torch.cuda.current_stream())
        place.streams.order(place.index, held(self).index)

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        held(torch.cuda.default_stream()).streams.order(0, held(self).index)

    def elapsed_time(self, end: Event) -> float:
        _find("reads-clock", "untraceable", "the file measures time, so what it does depends on the machine")
        raise TraceEnd


@dataclass
class _Place:
    """What a stream stands for."""

    streams: Streams
    index: int
    before: list[Stream] = field(default_factory=list)
    """What was current where it was entered."""

    @property
    def handle(self) -> int:
        """A side stream's tells no more than an address: not how many there were before it."""
        if self.index:
            return self.index * _SCATTER % (1 << 47)
        return 0 if self is held(self.streams.legacy) else self.streams.handle


class Stream:
    """Stands for `torch.cuda.Stream`."""

    def __init__(self, streams: Streams, index: int) -> None:
        hold(self, _Place(streams, index))
        self.priority = 0

    @property
    def device(self) -> torch.device:
        return held(self).streams.card.device

    @property
    def device_index(self) -> int:
        return held(self).streams.card.index

    @property
    def cuda_stream(self) -> int:
        return held(self).handle

    @property
    def stream_id(self) -> int:
        return held(self).handle

    def wait_stream(self, stream: Stream) -> None:
        held(self).streams.order(held(self).index, held(stream).index)

    def wait_event(self, event: Event) -> None:
        held(self).streams.order(held(self).index, held(event).index)

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        held(self).streams.order(0, held(self).index)

    def query(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and held(other).handle == held(self).handle

    def __hash__(self) -> int:
        return held(self).index

    def __enter__(self) -> Stream:
        place = held(self)
        place.before.append(place.streams.current)
        place.streams.current = self
        return self

    def __exit__(self, *exc: object) -> None:
        place = held(self)
        place.streams.current = place.before.pop()


class StreamContext:
    """Stands for `torch.cuda.stream(...)`."""

    def __init__(self, streams: Streams, stream: Stream | None) -> None:
        hold(self, (streams, stream, []))

    def __enter__(self) -> None:
        streams, stream, before = held(self)
        before.append(streams.current)
        if stream is not None:
            streams.current = stream

    def __exit__(self, *exc: object) -> None:
        streams, _, before = held(self)
        streams.current = before.pop()


class Generator(torch._C.Generator):
    """Stands for `torch.Generator`: on the host, whatever device it is asked for; nothing is drawn from it."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        return super().__new__(cls, "cpu")


def _compile(model: Any = None, **kwargs: Any) -> Any:
    """Stands for `torch.compile`: leaves the function as it is."""
    _find("torch-compile", "proof", "torch.compile generates kernels that are not in the file")
    return model if model is not None else lambda function: function


_session: Session | None = None


def _find(rule: str, tier: str, message: str) -> None:
    if _session is not None:
        _session.note(rule, tier, message)


def _refuse(rule: str, tier: str, message: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        _find(rule, tier, message)
        raise TraceEnd

    return refuse


def install(session: Session) -> None:
    """Makes this process answer as if the target were here."""
    global _session
    _session = session
    hide_devices()
    install_cuda(session.streams, session.card)
    trace_conditions.install(session)
    trace_fake.install(session)
    _install_module_apply()
    _install_library()
    _install_autograd(session)
    wrap_triton_enabled.value = False  # kernels in torch.library.wrap_triton are launched as they are


def install_cuda(streams: Streams, card: Card) -> None:
    cuda = torch.cuda
    streams.card = card

    def make_stream(*args: Any, **kwargs: Any) -> Stream:
        return streams.new()

    def set_stream(stream: Stream | None) -> None:
        if stream is not None:
            streams.current = stream

    def figures(device: Any = None) -> DeviceProperties:
        """One card or another of the same kind."""
        found = card.figures()
        return replace(found, uuid=found.uuid[::-1], pci_bus_id=161) if streams.handle else found

    def capability(device: Any = None) -> tuple[int, int]:
        return card.figures().major, card.figures().minor

    def archs() -> list[str]:
        """What this build of torch is for: another build where the caller is another."""
        major, minor = capability()
        return [f"sm_{major}{minor}"] if card.count == 1 else ["sm_75", "sm_80", f"sm_{major}{minor}", "compute_120"]

    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "device_count": lambda: card.count,
        "current_device": lambda: card.index,
        "set_device": lambda device: None,
        "_exchange_device": lambda device: card.index,
        "_maybe_exchange_device": lambda device: card.index,
        "get_device_properties": figures,
        "get_device_capability": capability,
        "get_device_name": lambda device=None: card.figures().name,
        "get_arch_list": archs,
        "is_bf16_supported": lambda including_emulation=True: capability() >= (8, 0),
        "is_tf32_supported": lambda: capability() >= (8, 0),
        "synchronize": lambda device=None: streams.synchronize(),
        "empty_cache": lambda: None,
        "ipc_collect": lambda: None,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "is_current_stream_capturing": lambda: streams.capturing,
        "current_stream": lambda device=None: streams.current,
        "default_stream": lambda device=None: streams.legacy if streams.handle else streams.default,
        "Stream": make_stream,
        "stream": lambda stream: StreamContext(streams, stream),
        "set_stream": set_stream,
        "Event": Event,
        "graph": _refuse("cuda-graph", "untraceable", "CUDA graphs captured by the file itself cannot be traced"),
        "CUDAGraph": _refuse("cuda-graph", "untraceable", "CUDA graphs captured by the file itself cannot be traced"),
        "_compile_kernel": _refuse("foreign-kernel", "proof", "kernels that are not Triton are not allowed"),
    }
    for name, answer in answers.items():
        setattr(cuda, name, answer if isinstance(answer, type) else sealed(answer, name))
    cuda.streams.Stream, cuda.streams.Event = make_stream, Event
    torch.accelerator.is_available = sealed(lambda: True, "is_available")
    torch.accelerator.current_accelerator = sealed(lambda check_available=False: card.device, "current_accelerator")
    torch.accelerator.synchronize = cuda.synchronize
    # Recurrent layers ask whether cuDNN wants their weights in one piece: it has no part in a trace.
    torch.backends.cudnn.is_acceptable = sealed(lambda tensor: False, "is_acceptable")
    torch.Generator = Generator
    torch.compile = sealed(_compile, "compile")
    torch._C._cuda_getCurrentRawStream = sealed(lambda device: streams.current.cuda_stream, "_cuda_getCurrentRawStream")


def _install_library() -> None:
    """A file may define ops of its own, but not change torch's."""
    define = torch._C._dispatch_library

    def dispatch_library(kind: str, namespace: str, *args: Any) -> Any:
        if namespace in ("aten", "prim", "prims", "_"):
            _find("tampering", "proof", f"the file registers implementations for torch's own {namespace} ops")
            raise TraceEnd
        return define(kind, namespace, *args)

    torch._C._dispatch_library = sealed(dispatch_library, "_dispatch_library")


def _install_autograd(session: Session) -> None:
    """A backward pass inside of `forward` is torch computing; fake tensors on a device cannot run it."""
    run = torch.autograd.graph._engine_run_backward

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        if session.rec is None:
            return run(*args, **kwargs)
        _find("torch-compute", "proof", "forward runs a backward pass of torch's autograd")
        raise TraceEnd

    torch.autograd.graph._engine_run_backward = sealed(run_backward)
    torch.autograd._engine_run_backward = torch.autograd.graph._engine_run_backward
    context = torch.autograd.function.FunctionCtx
    set_materialize = context.set_materialize_grads

    def set_materialize_grads(self: Any, value: bool) -> None:
        """Torch keeps the setting to itself."""
        set_materialize(self, value)
        (session.sparse_contexts.discard if value else session.sparse_contexts.add)(self)

    context.set_materialize_grads = sealed(set_materialize_grads)


def _install_module_apply() -> None:
    """`Module.to` and friends on fake parameters: torch's own way (swapping tensors) fails on them."""

    def _apply(self: torch.nn.Module, fn: Any, recurse: bool = True) -> torch.nn.Module:
        if recurse:
            for module in self.children():
                module._apply(fn)
        for param in self._parameters.values():
            if param is not None:
                with torch.no_grad():
                    param.data = fn(param.data)
        for key, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[key] = fn(buffer)
        return self

    torch.nn.Module._apply = sealed(_apply)


def hide_devices() -> None:
    """A job must not find a real GPU; CUDA reads this when it is first used in the process."""
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["HIP_VISIBLE_DEVICES"] = ""


class _NoDevice(fake_tensor.FakeTensorMode):
    """Fake tensors that never ask CUDA anything: a zygote that initialises CUDA would break its children's."""

    avoid_device_init = True


@contextlib.contextmanager
def _without_cuda() -> Iterator[None]:
    guard = torch._C._ensureCUDADeviceGuardSet
    torch._C._ensureCUDADeviceGuardSet = lambda: None
    try:
        yield
    finally:
        torch._C._ensureCUDADeviceGuardSet = guard


@torch.no_grad()
def first_use() -> None:
    """Imports that torch makes at first use; called once in the zygote, before forking."""
    import torch._dynamo
    import torch._higher_order_ops.triton_kernel_wrap
    import torch.library

    nn = torch.nn
    with _without_cuda(), _NoDevice():
        layers = (
            nn.Linear(2, 2),
            nn.Conv1d(2, 2, 1),
            nn.Conv2d(2, 2, 1),
            nn.Conv3d(2, 2, 1),
            nn.ConvTranspose2d(2, 2, 1),
            nn.LayerNorm(2),
            nn.BatchNorm2d(2),
            nn.GroupNorm(1, 2),
            nn.Embedding(2, 2),
            nn.MultiheadAttention(2, 1),
            nn.LSTM(2, 2),
        )
        x = torch.empty(4, 4, device="cpu")
        (x.t().contiguous() + torch.zeros_like(x) @ x).softmax(-1).to(torch.float16).clone()
        torch.cat([x, x]), torch.arange(4, device="cpu"), torch.tensor([1.0], device="cpu")
        del layers
