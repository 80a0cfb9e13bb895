"""The rules of operations, by name, and what is asked about operations of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import Node as FxNode

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
VIEWS: set[str] = set()
"""Operations whose result shares memory with their first argument, or may."""


def lowers(*names: str, view: bool = False) -> Callable[[Rule], Rule]:
    """Registers the rule of some operations, by their names without namespace and overload."""

    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
            if view:
                VIEWS.add(name)
        return rule

    return register


SHAPE_ONLY = {"sym_size"}


COPIES = {"clone", "lift_fresh_copy"}
"""Views to the rules whose results are memory of their own to the problem."""


PRIMS = {"convert_element_type"}
"""Operations of `prims` that have a rule; that library gives other arguments to many of ATen's names."""


TEMPLATES = frozenset(
    (
        *("mm", "bmm", "addmm", "addbmm", "baddbmm", "matmul", "linalg_matmul", "linear", "bilinear", "einsum"),
        *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        *("convolution", "_convolution", "scaled_dot_product_attention", "gru", "lstm", "rnn_relu", "rnn_tanh"),
    )
)
"""Operations whose operands are those of a matrix product."""


def base_name(target: Any) -> str:
    """`relu` for `aten.relu.default`."""
    return (
        target._schema.name.split("::")[-1] if hasattr(target, "_schema") else getattr(target, "__name__", str(target))
    )


def rule_of(target: Any, *names: str) -> Rule | None:
    """The rule of an operation, under the first of these names that has one. Other libraries reuse ATen's names."""
    if getattr(target, "namespace", "aten") != "aten" and names[0] not in PRIMS:
        return None
    return next((RULES[name] for name in names if name in RULES), None)


def feeds_no_template(node: FxNode) -> bool:
    """Whether a result is only an operand of element-wise operations and reductions, not the problem's result."""
    for user in node.users:
        if user.op == "output" or base_name(user.target) in TEMPLATES:
            return False
        if base_name(user.target) in VIEWS and not feeds_no_template(user):
            return False
    return bool(node.users)


def uses(node: FxNode) -> int:
    """How many operations use a result, looking through views."""
    total = 0
    for user in node.users:
        if user.op == "call_function" and base_name(user.target) in VIEWS:
            total += max(uses(user), 1)
        else:
            total += 1
    return total


def load_rules() -> None:
    """Imports the modules that register rules."""
    from tilewright.teacher import (  # noqa: F401
        ops_loss,
        ops_norm,
        ops_order,
        ops_pointwise,
        ops_pool,
        ops_recurrent,
        ops_reduce,
        ops_scatter,
        ops_template,
        ops_view,
    )
