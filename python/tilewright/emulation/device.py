"""What torch and Triton answer about the GPU that kernels are compiled for, and that is not there."""

from __future__ import annotations

import contextlib
import functools
import time
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from tilewright.cell.trace_device import DeviceProperties, Driver

from .mode import CPU, CUDA, as_device, on_cpu
from .patches import Patches

if TYPE_CHECKING:
    from .context import Emulation

_QUIET = (
    "init",
    "_lazy_init",
    "synchronize",
    "set_device",
    "empty_cache",
    "ipc_collect",
    "set_stream",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "reset_accumulated_memory_stats",
)
_ZERO = (
    "current_device",
    "_exchange_device",
    "_maybe_exchange_device",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "utilization",
)


class Stream:
    """Stands for `torch.cuda.Stream`: work is done when the call returns."""

    device = CUDA
    device_index = 0
    priority = 0
    cuda_stream = 0
    stream_id = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def _nothing(self, *args: Any) -> None:
        pass

    wait_stream = wait_event = synchronize = _nothing

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def query(self) -> bool:
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return 0


class Event:
    """Stands for `torch.cuda.Event`."""

    cuda_event = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._time = 0.0

    def record(self, stream: Stream | None = None) -> None:
        self._time = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        pass

    synchronize = wait

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds, of the emulator's time."""
        return max(1000.0 * (end._time - self._time), 1e-3)


class _Instances(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch._C.Generator)


class Generator(torch._C.Generator, metaclass=_Instances):
    """Stands for `torch.Generator`: on the CPU, whatever device it is asked for."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        return super().__new__(cls, on_cpu(as_device(device)))


class EmulatedDriver(Driver):
    """Triton's driver while the emulator runs kernels."""

    def __init__(self, target: dict[str, Any], properties: DeviceProperties, cuda: bool) -> None:
        super().__init__(target, properties)
        self._cuda = cuda

    def get_active_torch_device(self) -> torch.device:
        return CUDA if self._cuda else CPU

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(1, dtype=torch.int32, device="cpu")

    def get_benchmarker(self) -> Any:
        return lambda kernel_call, quantiles=None, **kwargs: [1.0] * len(quantiles or (0.5,))


def install_triton(session: Emulation, patches: Patches, active: EmulatedDriver) -> None:
    """Has Triton's launches run by the session."""
    from . import launch

    def run(self: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return launch.run(session, self, args, grid, warmup, kwargs)

    def bench(self: Autotuner, *args: Any, config: Any, **meta: Any) -> list[float]:
        """All configurations are equally fast, so the first one is taken."""
        if session.autotune == "all":
            measure = self.do_bench
            self.__dict__["do_bench"] = lambda kernel_call, quantiles: (kernel_call(), [1.0, 1.0, 1.0])[1]
            try:
                return real_bench(self, *args, config=config, **meta)
            finally:
                self.__dict__["do_bench"] = measure
        return [1.0, 1.0, 1.0]

    def do_bench(fn: Any, *args: Any, quantiles: Any = None, return_mode: str = "mean", **kwargs: Any) -> Any:
        start = time.perf_counter()
        fn()
        milliseconds = 1000.0 * (time.perf_counter() - start)
        if quantiles is not None:
            return milliseconds if len(quantiles) == 1 else [milliseconds] * len(quantiles)
        return [milliseconds] if return_mode == "all" else milliseconds

    import triton.testing

    real_bench = Autotuner._bench
    patches.set(JITFunction, "run", run)
    patches.set(Autotuner, "_bench", bench)
    patches.set(triton.testing, "do_bench", do_bench)
    patches.set(triton.testing, "do_bench_cudagraph", do_bench)
    patches.set(driver, "_default", active)
    patches.set(driver, "_active", active)


def install_cuda(session: Emulation, patches: Patches, properties: DeviceProperties) -> None:
    """Has torch answer as if the GPU were there."""
    for name, answer in _cuda_answers(properties).items():
        patches.set(torch.cuda, name, answer)
    patches.set(torch.cuda.streams, "Stream", Stream)
    patches.set(torch.cuda.streams, "Event", Event)
    patches.set(torch, "Generator", Generator)
    for name, answer in _accelerator_answers().items():
        if hasattr(torch.accelerator, name):
            patches.set(torch.accelerator, name, answer)
    patches.set(torch._C, "_cuda_getCurrentRawStream", lambda device: 0)
    _install_defaults(session, patches)
    _install_autocast(patches)
    _install_library(patches)


def _cuda_answers(properties: DeviceProperties) -> dict[str, Any]:
    capability = (properties.major, properties.minor)
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: capability,
        "get_device_name": lambda device=None: properties.name,
        "get_arch_list": lambda: [f"sm_{properties.major}{properties.minor}"],
        "is_bf16_supported": lambda including_emulation=True: properties.major >= 8,
        "is_tf32_supported": lambda: properties.major >= 8,
        "mem_get_info": lambda device=None: (properties.total_memory, properties.total_memory),
        "memory_stats": lambda device=None: {},
        "is_current_stream_capturing": lambda: False,
        "current_stream": lambda device=None: Stream(),
        "default_stream": lambda device=None: Stream(),
        "manual_seed": lambda seed: torch.default_generator.manual_seed(seed) and None,
        "manual_seed_all": lambda seed: torch.default_generator.manual_seed(seed) and None,
        "seed": lambda: torch.default_generator.seed() and None,
        "initial_seed": lambda: torch.default_generator.initial_seed(),
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
        "Stream": Stream,
        "Event": Event,
    }
    # Each is a function of its own: torch.compile keeps a table by function.
    answers.update((name, _answering(None)) for name in _QUIET)
    answers.update((name, _answering(0)) for name in _ZERO)
    answers.update((name, _context()) for name in ("stream", "device", "device_of"))
    return answers


def _answering(value: Any) -> Any:
    return lambda *args, **kwargs: value


def _context() -> Any:
    @contextlib.contextmanager
    def context(*args: Any, **kwargs: Any) -> Any:
        yield

    return context


def _accelerator_answers() -> dict[str, Any]:
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "current_device_index": lambda: 0,
        "current_device_idx": lambda: 0,
        "set_device_index": lambda device: None,
        "set_device_idx": lambda device: None,
        "current_stream": lambda device=None: Stream(),
        "set_stream": lambda stream: None,
        "synchronize": lambda device=None: None,
    }


def _install_defaults(session: Emulation, patches: Patches) -> None:
    """The default device, which torch keeps outside of what a mode sees, and gradients, which it computes there."""
    set_default, get_default = torch.set_default_device, torch.get_default_device
    run_backward = torch.autograd._engine_run_backward

    def set_default_device(device: Any) -> None:
        session.mode.default = CPU if device is None else as_device(device)
        set_default(None if device is None else on_cpu(as_device(device)))

    def get_default_device() -> torch.device:
        return CUDA if session.mode.default.type == "cuda" else get_default()

    def engine_run_backward(*args: Any, **kwargs: Any) -> Any:
        with session.mode:
            return run_backward(*args, **kwargs)

    patches.set(torch, "set_default_device", set_default_device)
    patches.set(torch, "get_default_device", get_default_device)
    patches.set(torch.autograd, "_engine_run_backward", engine_run_backward)


def _install_autocast(patches: Patches) -> None:
    """Autocast for a GPU is autocast for the CPU."""
    real = torch.amp.autocast_mode.autocast.__init__

    def init(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":
            args = args if args else ((kwargs.pop("dtype", None) or torch.float16),)
        real(self, "cpu" if device_type == "cuda" else device_type, *args, **kwargs)

    patches.set(torch.amp.autocast_mode.autocast, "__init__", init)
    for name in ("is_autocast_enabled", "get_autocast_dtype"):
        patches.set(torch, name, _of_cpu(getattr(torch, name)))
    patches.set(torch, "get_autocast_gpu_dtype", torch.get_autocast_cpu_dtype)


def _of_cpu(function: Any) -> Any:
    return lambda device_type="cuda": function("cpu" if device_type == "cuda" else device_type)


def _install_library(patches: Patches) -> None:
    """What a library implements for a GPU is used for tensors on the CPU, unless it has something else for those."""
    real = torch.library.Library.impl
    added: set[str] = set()

    def impl(self: Any, name: Any, fn: Any, dispatch_key: str = "", **kwargs: Any) -> Any:
        host = dispatch_key.replace("CUDA", "CPU")
        key = f"{self.ns}::{name} {host}"
        if key in added:
            return None
        if isinstance(fn, FunctionType) and fn is not torch.library.fallthrough_kernel:
            fn = _within(fn)
        result = real(self, name, fn, dispatch_key, **kwargs)
        if host != dispatch_key:
            with contextlib.suppress(RuntimeError):
                real(self, name, fn, host, **kwargs)
                added.add(key)
        return result

    patches.set(torch.library.Library, "impl", impl)


def _within(fn: Any) -> Any:
    """An implementation that sees the GPU: torch leaves out the modes around a call of its operator."""
    from . import context

    @functools.wraps(fn)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with context.current().mode if context.is_on() else contextlib.nullcontext():
            return fn(*args, **kwargs)

    return inside
