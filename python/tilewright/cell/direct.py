"""Handler `direct`: a candidate's file, unmodified, on real data on a real device. Hostile code.

Request: `{source, signature: CaseSignature, device, data: path, state: [Blob], calls: [{inputs: [Blob]}], out: path}`.
`data` holds weights and inputs, never expected outputs. Response: `{calls: [Expected]}`, as the oracle describes what
the reference did, with blobs in the file `out`; or an error document of kind `no-device` (torch sees no such device),
`weights` (the names of the state differ), `unsupported` (an output that no document can hold) or `exception`.

The judge and the clock are elsewhere. This process is the candidate's own: what it says is a claim about itself.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import torch

from tilewright.cell import gradients
from tilewright.cell import oracle_reference as reference
from tilewright.cell import triton_backend as backend
from tilewright.cell.oracle_values import NAMES, DataFile, UnsupportedValue, decode, read_blob
from tilewright.cell.toolchain import show_toolchain


class WeightsDiffer(Exception):
    """The candidate's `state_dict` has not the reference's names, shapes and dtypes."""


def run(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """Handle one job; `scratch` is not used."""
    del scratch
    device = request["device"]
    try:
        torch.empty(1, device=device)
    except Exception as error:
        return backend.error("no-device", error, message=f"torch cannot use {device} here: {error}")
    show_toolchain()
    try:
        with open(request["out"], "wb", buffering=1 << 20) as file:
            return {"calls": run_calls(request, DataFile(file))}
    except WeightsDiffer as error:
        return backend.error("weights", error)
    except UnsupportedValue as error:
        return backend.error("unsupported", error)
    except SyntaxError as error:
        return backend.error("exception", error, message=error.msg, line=error.lineno)
    except (Exception, SystemExit) as error:
        return backend.error("exception", error)


def run_calls(request: dict[str, Any], out: DataFile) -> list[dict[str, Any]]:
    """Build the module, give it the weights, make the calls one after the other."""
    signature, device, data = request["signature"], request["device"], request["data"]
    module = load_candidate(request["source"])
    reference.pin()
    args = [decode(value, []) for value in signature["init_args"]]
    kwargs = {key: decode(value, []) for key, value in signature["init_kwargs"]}
    model = module.ModelNew(*args, **kwargs).to(device).train(signature["training"])
    load_state(model, signature["state"], [read_blob(data, blob, torch.uint8) for blob in request["state"]])
    gradients.attach(model, signature.get("gradients"))
    dtypes = buffer_dtypes(signature["args"], signature["buffers"])
    described = []
    for call in request["calls"]:
        flats = [read_blob(data, blob, dtype).to(device) for blob, dtype in zip(call["inputs"], dtypes, strict=True)]
        before = [flat.clone() for flat in flats]
        run = reference.call(model, signature["args"], flats, 0)
        described.append(reference.describe_expected(run, None, before, {}, out.write))
    return described


def load_candidate(source: str) -> types.ModuleType:
    """Execute the candidate's file under the name that its lines are reported with."""
    module = types.ModuleType("candidate")
    module.__file__ = backend.SOURCE_NAME
    sys.modules["candidate"] = module
    exec(backend.compile_source(source), module.__dict__)
    if not hasattr(module, "ModelNew"):
        raise AttributeError("the candidate does not define ModelNew")
    return module


def load_state(model: torch.nn.Module, entries: list[dict[str, Any]], blobs: list[torch.Tensor]) -> None:
    """Copy the reference's weights in by name. Raises `WeightsDiffer` listing what does not match."""
    own = reference.state_of(model)
    wanted = {entry["name"]: entry for entry in entries}
    missing, extra = sorted(wanted.keys() - own.keys()), sorted(own.keys() - wanted.keys())
    if missing or extra:
        raise WeightsDiffer(f"state_dict differs: missing {missing or 'none'}, extra {extra or 'none'}")
    for (name, entry), blob in zip(wanted.items(), blobs, strict=True):
        value = blob.view(NAMES[entry["dtype"]]).reshape(entry["shape"])
        if own[name].shape != value.shape:
            raise WeightsDiffer(f"{name} has shape {list(own[name].shape)}, in the reference {list(value.shape)}")
        own[name].detach().copy_(value)


def buffer_dtypes(docs: list[dict[str, Any]], sizes: list[int]) -> list[torch.dtype]:
    """Dtype of each input storage: its first user's, or bytes where that does not divide its size."""
    found: dict[int, torch.dtype] = {}

    def visit(doc: dict[str, Any]) -> None:
        if doc["kind"] == "tensor":
            found.setdefault(doc["buffer"], NAMES[doc["dtype"]])
        for item in doc.get("items", []):
            visit(item[1] if doc["kind"] == "dict" else item)

    for doc in docs:
        visit(doc)
    dtypes = [found.get(index, torch.uint8) for index in range(len(sizes))]
    return [dtype if size % dtype.itemsize == 0 else torch.uint8 for dtype, size in zip(dtypes, sizes, strict=True)]
