"""What one call of the reference takes, from a run on fake tensors: no memory, no arithmetic.

The same run shows which outputs the reference only moves into place.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tilewright.cell.oracle_problem import Case
from tilewright.cell.oracle_values import encode, result_path

MOVES = frozenset(
    (
        *("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided"),
        *(
            "zeros",
            "zeros_like",
            "new_zeros",
            "ones",
            "ones_like",
            "new_ones",
            "full",
            "full_like",
            "new_full",
            "fill",
            "fill_",
            "zero_",
            "scalar_tensor",
        ),
        *("clone", "copy", "copy_", "_to_copy", "contiguous", "lift_fresh", "lift_fresh_copy", "detach", "alias"),
        *(
            "cat",
            "stack",
            "constant_pad_nd",
            "repeat",
            "roll",
            "flip",
            "tril",
            "tril_",
            "triu",
            "triu_",
            "pixel_shuffle",
            "pixel_unshuffle",
            "channel_shuffle",
            "native_channel_shuffle",
            "im2col",
            *(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3)),
            *(f"{kind}{n}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)),
            "slice_scatter",
            "select_scatter",
            "as_strided_scatter",
            "diagonal_scatter",
        ),
        *("set_", "resize_", "is_same_size", "sym_size", "sym_stride", "sym_numel", "sym_storage_offset"),
    )
)
"""Operations whose result holds only values of their arguments, at other places: what copies and fills can express.
Anything else is taken to compute."""

CHOICES = frozenset(
    ("index", "index_select", "gather", "take", "where", "masked_fill", "masked_fill_", "masked_scatter", "embedding")
)
"""Operations that move what their arguments in SELECTORS say: moves as long as no input or weight decides it."""

UNORDERED = frozenset(("sort", "topk", "kthvalue", "median", "nanmedian", "mode"))
"""Operations that may give equal elements in any order, unless they are asked to be stable."""

SELECTORS = frozenset(("index", "indices", "condition", "mask"))


@dataclass
class Estimate:
    """Bytes of one call of a case."""

    inputs: int = 0
    state: int = 0
    outputs: int = 0
    written: int = 0
    """Inputs and state that the call modifies."""
    wide: int = 0
    """Float64 results: of floating outputs, and of inputs and state that the call modifies."""
    peak: int = 0
    """Largest sum of storages alive at once."""
    ties: bool = False
    """Whether torch leaves open which of several equal elements the call picks."""
    copy_only: dict[str, bool] = field(default_factory=dict)
    """By path of an output, such as `output[0]`: whether the reference only moves data there."""

    def trial(self, calls: int) -> int:
        """What a trial adds to the data file."""
        return self.state + calls * (self.inputs + self.outputs + self.written + self.wide)

    @property
    def memory(self) -> int:
        """What is alive at most: the native run's storages and results, then a float64 run, of twice the size."""
        return 3 * self.peak + 2 * (self.inputs + self.state) + self.outputs


class _Watch(TorchDispatchMode):
    """Adds up living storages, and marks those that an operation wrote, and those that hold computed values."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: dict[int, int] = {}
        self.users: dict[int, int] = {}
        self.computed: set[int] = set()
        # Storages whose contents depend on an input or on state.
        self.data: set[int] = set()
        self.written: set[int] = set()
        self.ties = False
        self.total = 0
        self.peak = 0
        # Fake storages cost nothing: kept, so that no key is used twice.
        self.kept: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.ties |= func._overloadpacket.__name__ in UNORDERED and not (kwargs or {}).get("stable")
        before = {_key(t) for t in tree_leaves((args, kwargs or {})) if isinstance(t, torch.Tensor)}
        moves = func._overloadpacket.__name__ in MOVES or func.is_view or self._chooses(func, args, kwargs or {})
        data = any(key in self.data for key in before)
        selects = func._overloadpacket.__name__ in CHOICES
        dirty = moves and any(key in self.computed and not (selects and key not in self.data) for key in before)
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.take(tensor)
                if dirty or not moves:
                    self.computed.add(_key(tensor))
                if data:
                    self.data.add(_key(tensor))
        self._note_writes(func, args, kwargs or {}, not moves or dirty, data)
        return result

    def _chooses(self, func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
        """Whether the operation moves elements to places that are the same whatever the inputs hold."""
        if func._overloadpacket.__name__ not in CHOICES:
            return False
        given = _by_name(func, args, kwargs)
        chosen = tree_leaves([value for name, value in given.items() if name in SELECTORS])
        return not any(isinstance(leaf, torch.Tensor) and _key(leaf) in self.data for leaf in chosen)

    def _note_writes(self, func: Any, args: Any, kwargs: dict[str, Any], computed: bool, data: bool) -> None:
        """Arguments that the operation writes, returned or not."""
        given = _by_name(func, args, kwargs)
        for argument in func._schema.arguments:
            if argument.alias_info is not None and argument.alias_info.is_write:
                keys = {_key(t) for t in tree_leaves(given.get(argument.name)) if isinstance(t, torch.Tensor)}
                self.written |= keys
                if computed:
                    self.computed |= keys
                if data:
                    self.data |= keys

    def take(self, tensor: torch.Tensor) -> None:
        """Count a tensor's storage until the last tensor over it dies."""
        key = _key(tensor)
        if key not in self.alive:
            self.kept.append(tensor.untyped_storage())
            self.alive[key] = tensor.untyped_storage().nbytes()
            self.users[key] = 0
        if self.users[key] == 0:
            self.total += self.alive[key]
            self.peak = max(self.peak, self.total)
        self.users[key] += 1
        weakref.finalize(tensor, self._drop, key)

    def _drop(self, key: int) -> None:
        self.users[key] -= 1
        if self.users[key] == 0:
            self.total -= self.alive[key]


def _by_name(func: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    return dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs


def _key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def estimate(case: Case) -> Estimate | None:
    """Run a case on fake tensors. None if it cannot run there, as when `forward` reads data."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad(), _Watch() as watch:
            return _run(case, watch)
    except (Exception, SystemExit):
        return None


def _run(case: Case, watch: _Watch) -> Estimate:
    found = Estimate()
    model = case.build()
    state = list(model.state_dict().values())
    args = case.inputs()
    inputs = [leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)]
    for tensor in (*state, *inputs):
        watch.take(tensor)
    watch.computed.clear()
    watch.data = {_key(tensor) for tensor in (*state, *inputs)}
    watch.written.clear()
    owned = {_key(tensor): tensor for tensor in (*inputs, *state)}
    found.inputs = sum(_bytes(tensor) for tensor in {_key(tensor): tensor for tensor in inputs}.values())
    found.state = sum(tensor.numel() * tensor.element_size() for tensor in state)
    output = model(*args)
    outputs: list[torch.Tensor] = []

    def note(tensor: torch.Tensor, path: str) -> dict[str, Any]:
        outputs.append(tensor)
        found.copy_only[result_path(path)] = _key(tensor) not in watch.computed
        return {}

    encode(output, note)
    found.outputs = sum(tensor.numel() * tensor.element_size() for tensor in outputs)
    modified = [tensor for key, tensor in owned.items() if key in watch.written]
    found.written = sum(_bytes(tensor) for tensor in modified)
    found.wide = sum(8 * tensor.numel() for tensor in outputs if tensor.is_floating_point())
    found.wide += sum(8 * _bytes(tensor) // tensor.element_size() for tensor in modified if tensor.is_floating_point())
    found.peak = watch.peak
    found.ties = watch.ties
    return found


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes()
