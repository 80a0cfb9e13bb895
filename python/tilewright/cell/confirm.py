"""Handler `confirm`: a candidate's file, unmodified, on real data, in front of a recording driver. Hostile code.

Request: that of `direct` with one call, and `library`: the recording library, in whose folder linkers find it. The
descriptor `child.GIVEN_FD` is its channel. Response: `{}`, or an error document as of `direct`; what is known about the
run is in the recording alone.

The zygote of this job loads the library before torch, under the driver's name, so that torch's and Triton's calls pass
through it. Marks divide the recording into phases (`PHASES`); the trusted side demands each once, in order.
"""

from __future__ import annotations

import ctypes
import os
import types
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from tilewright.cell import direct, gradients
from tilewright.cell import oracle_reference as reference
from tilewright.cell import triton_backend as backend
from tilewright.cell.child import GIVEN_FD
from tilewright.cell.oracle_values import NAMES, decode, read_blob
from tilewright.cell.toolchain import show_toolchain

PHASES = ("probe", "file", "state", "warm", "inputs", "forward", "outputs", "done")
"""In the order of the Rust side's `Phase`."""


class NoRecorder(RuntimeError):
    """The recording library cannot take its place in front of the driver."""


def run(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """Handle one job; `scratch` is not used."""
    del scratch
    try:
        mark = open_recorder()
        show_toolchain(request["library"])
        request["device"] = show_one_device(request["device"])
        mark("probe")
        probe(request["device"])
    except Exception as error:
        return backend.error("no-device", error, message=f"nothing can be recorded here: {error}")
    try:
        record(request, mark)
    except SyntaxError as error:
        return backend.error("exception", error, message=error.msg, line=error.lineno)
    except (Exception, SystemExit) as error:
        return backend.error("exception", error)
    return {}


def open_recorder() -> Callable[[str], None]:
    """Open the channel of the library in front of the driver. The function marks the beginning of a phase."""
    library = ctypes.CDLL("libcuda.so.1")
    if not hasattr(library, "tilewright_open"):
        raise NoRecorder("something loaded the driver before the recording library")
    if status := library.tilewright_open(GIVEN_FD):
        raise NoRecorder({1: "the recording library does not find the driver"}.get(status, "the channel is closed"))
    send = library.tilewright_mark
    send.argtypes, send.restype = [ctypes.c_uint32], None
    return lambda phase: send(PHASES.index(phase))


def show_one_device(device: str) -> str:
    """Let CUDA see only the device of the run, and return what it is called then. Torch's autograd starts a thread for
    every device that it sees, and each makes a context there. Nothing may have used CUDA before."""
    kind, _, number = device.partition(":")
    if kind != "cuda":  # stands in for a device in tests
        return device
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    os.environ["CUDA_VISIBLE_DEVICES"] = visible[int(number or 0)] if visible else number or "0"
    return "cuda:0"


@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):
    """Launched to see that kernels can be launched here at all."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


def probe(device: str) -> None:
    """What the recorder must have seen before all else: an upload, launches of torch's and of Triton's, a download.

    What does not work here is no fault of the file that comes after.
    """
    values = torch.arange(64, dtype=torch.float32)
    there = values.to(device) + 1
    if device != "cpu":  # stands in for a device in tests
        add_one[(1,)](there, 64, BLOCK=64)
        values += 1
    if not torch.equal(there.cpu(), values + 1):
        raise NoRecorder("torch and Triton do not compute here")


def finish(device: str) -> None:
    """Wait until everything that was asked of the device is done."""
    if device != "cpu":  # stands in for a device in tests
        torch.cuda.synchronize(device)


def record(request: dict[str, Any], mark: Callable[[str], None]) -> None:
    """Build the module, upload weights, make a first call, and then the one that counts."""
    signature, device, data = request["signature"], request["device"], request["data"]
    mark("file")
    module = direct.load_candidate(request["source"])
    model = make_model(module, signature, device)
    mark("state")
    load_state(model, signature["state"], [read_blob(data, blob, torch.uint8) for blob in request["state"]])
    dtypes = direct.buffer_dtypes(signature["args"], signature["buffers"])
    (call,) = request["calls"]
    inputs = [read_blob(data, blob, dtype) for blob, dtype in zip(call["inputs"], dtypes, strict=True)]
    mark("warm")
    forward(model, signature, [flat.to(device) for flat in inputs])
    finish(device)
    mark("inputs")
    flats = [flat.to(device) for flat in inputs]
    mark("forward")
    output = forward(model, signature, flats)
    mark("outputs")
    read_storages(output)
    finish(device)
    mark("done")


def make_model(module: types.ModuleType, signature: dict[str, Any], device: str) -> torch.nn.Module:
    """`ModelNew` as a user makes it."""
    args = [decode(value, []) for value in signature["init_args"]]
    kwargs = {key: decode(value, []) for key, value in signature["init_kwargs"]}
    reference.seed_all(0)
    model = module.ModelNew(*args, **kwargs).to(device).train(signature["training"])
    return gradients.attach(model, signature.get("gradients"))


def load_state(model: torch.nn.Module, entries: list[dict[str, Any]], blobs: list[torch.Tensor]) -> None:
    """Upload the reference's weights by name, where the candidate has them; no launch depends on the numbers."""
    own = reference.state_of(model)
    for entry, blob in zip(entries, blobs, strict=True):
        target = own.get(entry["name"])
        value = blob.view(NAMES[entry["dtype"]]).reshape(entry["shape"])
        if target is not None and target.shape == value.shape:
            target.detach().copy_(value)


def forward(model: torch.nn.Module, signature: dict[str, Any], flats: list[torch.Tensor]) -> Any:
    """One call over these storages."""
    args = [decode(doc, flats) for doc in signature["args"]]
    with torch.no_grad():
        return model(*args)


def read_storages(output: Any) -> None:
    """Download the storage of each tensor in an output, each once."""
    seen = set()
    for tensor in tensors_in(output):
        storage = tensor.untyped_storage()
        if tensor.is_cuda and storage.nbytes() > 0 and storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage).cpu()


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors of an output in the order of a contract `Value`."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for item in items for tensor in tensors_in(item)]
