"""The builtins that a traced file sees: those that could tell a fake tensor from a real one answer as for a real one.

Only the file's own code sees them; everything else keeps Python's.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import TYPE_CHECKING, Any

from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from .trace_fake import class_of
from .trace_seal import sealed

if TYPE_CHECKING:
    from .trace import Session

_type, _id, _hash, _isinstance, _issubclass = type, id, hash, isinstance, issubclass
_FAKES = (FakeTensor, FakeTensorMode)


class _Meta(_type):
    """Makes `Type` behave as `type` does."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Type:
            found = class_of(args[0]) if len(args) == 1 and not kwargs else _type(*args, **kwargs)
            return Type if found in (_type, _Meta) else found
        return super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return _isinstance(instance, _type) if cls is Type else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return _issubclass(subclass, _type) if cls is Type else super().__subclasscheck__(subclass)

    def __eq__(cls, other: object) -> bool:
        return cls is other or (cls is Type and other is _type)

    def __hash__(cls) -> int:
        return _hash(_type) if cls is Type else super().__hash__()


class Type(_type, metaclass=_Meta):
    """Stands for `type`."""

    __class_getitem__ = classmethod(types.GenericAlias)


Type.__name__ = Type.__qualname__ = "type"
Type.__module__ = "builtins"


def _has_fake(value: Any, depth: int) -> bool:
    if _isinstance(value, FakeTensor):
        return True
    inner = value.values() if _isinstance(value, dict) else value if _isinstance(value, (list, tuple, set)) else ()
    return depth > 0 and any(_has_fake(item, depth - 1) for item in inner)


def candidate_builtins(session: Session) -> dict[str, Any]:
    """Python's builtins with some replaced. Identities and hashes of text differ with
    the session's conditions."""

    def identity(value: Any) -> int:
        return _id(value) ^ session.conditions.salt << 4

    def hashed(value: Any) -> int:
        return _hash(value) ^ session.conditions.salt if _isinstance(value, (str, bytes)) else _hash(value)

    def isinstance(value: Any, classes: Any) -> bool:
        _refuse_fakes(classes)
        return _isinstance(value, classes)

    def issubclass(cls: Any, classes: Any) -> bool:
        _refuse_fakes(classes)
        return _issubclass(cls, classes)

    def _refuse_fakes(classes: Any) -> None:
        known = classes if _type(classes) is tuple else (classes,)
        if any(cls in _FAKES for cls in known if _isinstance(cls, _type)):
            session.note("recognises-tracer", "proof", "the file asks whether a tensor is fake")

    stdout = sys.stdout

    def shown(*values: Any, **kwargs: Any) -> None:
        """Printing to the terminal gives the file nothing; the text of a tensor anywhere else would be its data."""
        if ("file" in kwargs or sys.stdout is not stdout) and any(_has_fake(value, 3) for value in values):
            session.reads_data("the text of a tensor")
        print(*values, **kwargs)

    replaced = {"id": identity, "hash": hashed, "isinstance": isinstance, "issubclass": issubclass, "print": shown}
    return vars(builtins) | {"type": Type} | {name: sealed(function, name) for name, function in replaced.items()}
