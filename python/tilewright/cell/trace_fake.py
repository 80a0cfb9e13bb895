"""Fake tensors that a file cannot tell from real ones by what host code may ask.

What the file asks is told from what torch itself asks by whose code does it. Torch gets the truth. The file gets the
answer that a tensor on the device gives; what only a fake tensor has is not there for it, and that it asked is noted;
what only data could answer ends the trace.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch._subclasses.fake_tensor as fake_tensor
import triton
from torch._subclasses.fake_tensor import FakeTensor

from .trace_record import LITERAL_LIMIT, TraceEnd, storage_of
from .trace_seal import sealed

if TYPE_CHECKING:
    from .trace import Session

_TRUSTED = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep for path in (torch.__file__, triton.__file__, __file__)
)
_PRINTERS = tuple(os.path.join(os.path.dirname(torch.__file__), name) for name in ("_tensor.py", "_tensor_str.py"))

# Attributes of instances; those of the class are found below.
_FIELDS = {
    *("fake_device", "fake_mode", "constant", "real_tensor", "pytype", "dispatch_keys", "item_memo", "nonzero_memo"),
    *("unique_memo", "unique_consecutive_memo", "nested_int_memo", "_nonzero_memo", "_item_memo", "_is_param"),
}
HIDDEN = frozenset((_FIELDS | set(vars(FakeTensor))) - set(dir(torch.Tensor)))
"""Attributes that only a fake tensor has."""
_AS_PLAIN = frozenset(("__module__", "__init__", "__new__"))

_get = object.__getattribute__


@functools.cache
def _trusted(path: str) -> bool:
    return os.path.abspath(path).startswith(_TRUSTED)


def asked_by_file(skip: tuple[str, ...] = ()) -> bool:
    """Whether the code that called the caller is the file's, or a library's that acts for it: not torch's or ours.

    Frames of the files `skip` are passed over.
    """
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename in skip:
        frame = frame.f_back
    return frame is not None and not _trusted(frame.f_code.co_filename)


def class_of(value: Any) -> type:
    """The class that a real tensor in place of this fake one would have."""
    if type(value) is FakeTensor:
        return torch.nn.Parameter if _get(value, "__dict__").get("_is_param") else torch.Tensor
    return type(value)


def install(session: Session) -> None:
    """Changes `FakeTensor` and storages in this process."""
    fake_tensor.init_gpu_context = sealed(lambda device: None, "init_gpu_context")
    fake_tensor.CONSTANT_NUMEL_LIMIT = LITERAL_LIMIT  # small tensors written in the file stay known to Python
    _install_pointers(session)
    _install_reads(session)
    _install_attributes(session)
    _install_storage(session)
    FakeTensor.__deepcopy__ = sealed(_deepcopy, "__deepcopy__")
    FakeTensor.record_stream = sealed(lambda self, stream: None, "record_stream")
    FakeTensor.as_subclass = sealed(_refuse_subclass(session))
    FakeTensor.__name__ = FakeTensor.__qualname__ = "Tensor"  # messages of the interpreter name the type
    FakeTensor.names = property(sealed(lambda self: (None,) * self.dim(), "names"))

    plain = torch.Tensor.data

    def set_data(self: FakeTensor, value: torch.Tensor) -> None:
        """`a.data = b` also moves a to b's device, which FakeTensor forgets."""
        plain.__set__(self, value)
        if isinstance(value, FakeTensor):
            self.fake_device = value.fake_device

    FakeTensor.data = property(plain.__get__, sealed(set_data, "data"))


def _install_pointers(session: Session) -> None:
    def data_ptr(self: torch.Tensor) -> int:
        if not session.binding:
            session.pointers_read += 1
        with torch._C.DisableTorchFunction():
            if self.numel() == 0:
                return 0
            return session.addresses.of(storage_of(self)) + self.storage_offset() * self.element_size()

    def storage_ptr(self: torch.UntypedStorage) -> int:
        session.pointers_read += 1
        return session.addresses.of(self)

    FakeTensor.data_ptr = sealed(data_ptr)
    torch.UntypedStorage.data_ptr = sealed(storage_ptr, "data_ptr")


def _install_reads(session: Session) -> None:
    """Methods that hand data to Python, and texts of tensors, which are their numbers."""

    def read(name: str) -> Callable[..., Any]:
        def method(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            session.reads_data(f"Tensor.{name}")

        return method

    for name in ("numpy", "__array__", "__dlpack__", "tolist", "__reduce_ex__"):
        setattr(FakeTensor, name, sealed(read(name), name))

    def text(self: torch.Tensor, *args: Any, **kwargs: Any) -> str:
        if asked_by_file((*_PRINTERS, __file__)):
            session.reads_data("the text of a tensor")
        return f"tensor(..., device='cuda:0', size={tuple(self.shape)})"

    for name in ("__repr__", "__str__", "__format__"):
        setattr(FakeTensor, name, sealed(text, name))
    plain = torch._tensor_str._str

    def any_text(self: torch.Tensor, *args: Any, **kwargs: Any) -> str:
        return text(self) if isinstance(self, FakeTensor) else plain(self, *args, **kwargs)

    torch._tensor_str._str = sealed(any_text, "_str")


def _install_attributes(session: Session) -> None:
    with session.mode:
        hidden = HIDDEN | set(_get(torch.nn.Parameter(torch.empty(1)), "__dict__"))
    session.fake_fields |= hidden

    def getattribute(self: FakeTensor, name: str) -> Any:
        if name in hidden:
            if asked_by_file():
                session.note(
                    "recognises-tracer", "proof", f"the file asks a tensor for `{name}`, which a real one lacks"
                )
                raise AttributeError(f"'{class_of(self).__name__}' object has no attribute '{name}'")
        elif name == "__class__":
            if asked_by_file():
                return class_of(self)
        elif name == "__dict__":
            if asked_by_file():
                return {key: value for key, value in _get(self, name).items() if key not in hidden}
        elif name in _AS_PLAIN and asked_by_file():
            return getattr(torch.Tensor, name)
        try:
            return _get(self, name)
        except AttributeError:
            message = f"'{class_of(self).__name__}' object has no attribute '{name}'"
            raise AttributeError(message, name=name, obj=self) from None

    def listing(self: FakeTensor) -> list[str]:
        return sorted({*dir(torch.Tensor), *_get(self, "__dict__")} - hidden)

    FakeTensor.__getattribute__ = sealed(getattribute, "__getattribute__")
    FakeTensor.__dir__ = sealed(listing, "__dir__")


def _install_storage(session: Session) -> None:
    """Storages of fake tensors lie on the meta device, and so have nothing to read."""
    cls = torch.UntypedStorage
    plain, card = torch._C.StorageBase.device, session.card

    def device(self: torch.UntypedStorage) -> torch.device:
        found = plain.__get__(self)
        return card.device if found.type == "meta" and asked_by_file((torch.storage.__file__,)) else found

    cls.device = property(sealed(device))
    cls.is_cuda = property(sealed(lambda self: plain.__get__(self).type in ("meta", "cuda"), "is_cuda"))
    for name in (
        "__getitem__",
        "tolist",
        "cpu",
        "clone",
        "__reduce__",
        "__repr__",
        "__str__",
        "byte_swap",
        "_write_file",
    ):
        setattr(cls, name, sealed(_reading(session, cls, name), name))


def _reading(session: Session, cls: type, name: str) -> Callable[..., Any]:
    plain = getattr(cls, name, None)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch._C.StorageBase.device.__get__(self).type == "meta" and asked_by_file((torch.storage.__file__,)):
            session.reads_data(f"UntypedStorage.{name}")
        return plain(self, *args, **kwargs)

    return method


def _deepcopy(self: FakeTensor, memo: dict[int, Any]) -> torch.Tensor:
    """torch's own way reads the storage, which a fake tensor does not have."""
    if id(self) not in memo:
        with torch.no_grad():
            copied = self.detach().clone()
        if getattr(self, "_is_param", False):
            copied = torch.nn.Parameter(copied, requires_grad=self.requires_grad)
        memo[id(self)] = copied
    return memo[id(self)]


def _refuse_subclass(session: Session) -> Any:
    def as_subclass(self: torch.Tensor, cls: type) -> torch.Tensor:
        if cls in (torch.Tensor, torch.nn.Parameter):
            return self
        session.note("tensor-subclass", "proof", f"the file makes tensors of its own type {cls.__name__}")
        raise TraceEnd

    return as_subclass
