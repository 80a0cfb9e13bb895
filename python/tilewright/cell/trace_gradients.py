"""`forward` and its backward pass as one call, for problems that declare gradients.

Torch's own engine cannot run here: for tensors on a device it asks the device for streams, and there is none. So the
graph is walked as the engine walks it: last operation first, gradients of one tensor added up, each node called on the
gradients of its outputs. What a node does is seen as in `forward`: launches of an `autograd.Function` become steps, and
arithmetic of torch's own is `torch-compute`.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.utils._pytree import tree_map

from . import gradients
from .trace_record import Recorder, TraceEnd
from .trace_seal import sealed

if TYPE_CHECKING:
    from .trace import Session

Edge = tuple[Any, int]
"""A node of the graph, and which of the tensors that it made."""

_HELP = (
    "Put the launches of forward into the forward of a torch.autograd.Function, save there what the gradients need, "
    "and launch the kernels for them in its backward."
)

_NO_HOOKS = "Do it in the backward of a torch.autograd.Function."


def install(session: Session) -> None:
    """Ends a trace in which the file hooks into the graph: torch's engine would call it, the walk does not.

    All ways to hook a tensor set one of its two dicts, and torch registers hooks of nodes through `Function`.
    """
    if session.signature.get("gradients") is None:
        return

    def refuse(*_: Any) -> None:
        message = f"hooks into the backward pass, which a trace does not call{session.source.quote()}"
        session.note("backward-hook", "untraceable", message, _NO_HOOKS)
        raise TraceEnd

    def guarded(held: Any) -> property:
        return property(sealed(held.__get__, "get"), sealed(lambda tensor, hooks: hooks is None or refuse(), "set"))

    for name in ("_backward_hooks", "_post_accumulate_grad_hooks"):
        setattr(torch.Tensor, name, guarded(vars(torch._C.TensorBase)[name]))
    torch.autograd.Function._register_hook = staticmethod(sealed(refuse, "_register_hook"))
    engine, no_callback = torch.autograd.Variable._execution_engine, sealed(refuse, "queue_callback")

    def ask(_: Any, name: str) -> Any:
        """The engine calls back at the end of a pass, too."""
        return no_callback if session.rec is not None and name == "queue_callback" else getattr(engine, name)

    torch.autograd.Variable._execution_engine = type("ImperativeEngine", (), {"__getattr__": sealed(ask)})()


def mark_leaves(session: Session, args: list[Any]) -> None:
    """Makes leaves of a graph of the arguments that gradients are asked for."""
    tensors = gradients.tensors_of(args[:-1])
    for _, at in session.signature["gradients"]["inputs"]:
        tensors[at].requires_grad_(True)


def without(module: Any, given: list[Any]) -> dict[str, Any]:
    """What `forward` returns in a call without gradients, by name."""
    with torch.no_grad():
        plain = tree_map(lambda value: value.detach() if isinstance(value, torch.Tensor) else value, given)
        return {gradients.OUTPUT: module(*plain)}


def results(session: Session, rec: Recorder, module: Any, args: list[Any]) -> dict[str, Any]:
    """What a call gives: outputs and gradients, by name."""
    spec = session.signature["gradients"]
    *given, vectors = args
    output = module(*given)
    outputs = gradients.outputs_of(output)
    pairs = [(outputs[at], vector) for at, vector in zip(spec["outputs"], vectors, strict=True) if at < len(outputs)]
    roots = [(_edge(tensor), vector) for tensor, vector in pairs if tensor.requires_grad]
    targets = gradients.targets(spec, module, given)
    edges = [None if target is None or not target.requires_grad else _edge(target) for target in targets]
    with torch.no_grad():
        got = Walk(session, [edge for edge in edges if edge is not None]).run(roots)
    values = [None if edge is None else got.get(_key(edge)) for edge in edges]
    answer = gradients.results(spec, output, values)
    _note_missing(rec, answer, targets)
    return answer


def _note_missing(rec: Recorder, answer: dict[str, Any], targets: list[torch.Tensor | None]) -> None:
    """Says why a gradient is not there: the verdict alone would say that it is `None`."""
    for (name, value), target in zip(list(answer.items())[1:], targets, strict=True):
        if value is not None:
            continue
        name = name.removeprefix("grad ")
        if target is None:
            message = f"ModelNew has no parameter {name}, whose gradient is asked for"
            rec.find("no-gradient", "evidence", message, help=f"Keep it as torch.nn.Parameter under the name {name}.")
        else:
            message = f"no gradient flows from the outputs to {name}: forward is not differentiable with regard to it"
            rec.find("no-gradient", "evidence", message, help=_HELP)


def _edge(tensor: torch.Tensor) -> Edge:
    edge = torch.autograd.graph.get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def _key(edge: Edge) -> tuple[int, int]:
    return id(edge[0]), edge[1]


Gradients = dict[tuple[int, int], torch.Tensor]
"""Gradients by `_key` of an edge."""


class Walk:
    """One walk through a graph, to the edges that are asked for."""

    def __init__(self, session: Session, targets: list[Edge]) -> None:
        self._session = session
        self._targets = {_key(edge) for edge in targets}
        self._ends = {id(node) for node, _ in targets}
        self._grads: dict[int, dict[int, torch.Tensor]] = {}
        """What has come together for each node so far, by the tensor that it made."""
        self._nodes: dict[int, Any] = {}
        """Every node on the way, which keeps its identity as long as it lives."""
        self._waiting: dict[int, int] = {}
        """How many edges lead to a node from nodes that were not called yet."""

    def run(self, roots: list[tuple[Edge, torch.Tensor]]) -> Gradients:
        """The gradients of the targets, from those of the roots."""
        found: Gradients = {}
        self._find_way([node for (node, _), _ in roots])
        for edge, vector in roots:
            self._add(edge, vector)
        ready = [
            self._entry(node) for node in {id(node): node for (node, _), _ in roots}.values() if self._is_ready(node)
        ]
        heapq.heapify(ready)
        while ready:
            node = self._nodes[heapq.heappop(ready)[1]]
            grads = self._grads.pop(id(node), {})
            found |= {(id(node), at): grad for at, grad in grads.items() if (id(node), at) in self._targets}
            for edge, grad in self._call(node, grads):
                self._add(edge, grad)
                self._waiting[id(edge[0])] -= 1
                if self._is_ready(edge[0]):
                    heapq.heappush(ready, self._entry(edge[0]))
        return found

    def _find_way(self, starts: list[Any]) -> None:
        """Find the nodes through which a target is reached; the engine calls no others."""
        order: list[Any] = []
        stack, seen = [(node, False) for node in starts], set()
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack += [(following, False) for following, _ in node.next_functions if following is not None]
        for node in order:  # what a node leads to comes before it
            edges = [following for following, _ in node.next_functions if id(following) in self._nodes]
            if edges or id(node) in self._ends:
                self._nodes[id(node)] = node
                self._waiting.setdefault(id(node), 0)
                for following in edges:
                    self._waiting[id(following)] += 1

    def _is_ready(self, node: Any) -> bool:
        return self._waiting.get(id(node)) == 0

    def _entry(self, node: Any) -> tuple[int, int]:
        """What was done last in `forward` comes first; leaves have the largest number of all."""
        return -node._sequence_nr(), id(node)

    def _add(self, edge: Edge, grad: torch.Tensor | None) -> None:
        """One more gradient of a tensor. Two are added up, by torch."""
        node, at = edge
        if grad is None or id(node) not in self._nodes:
            return
        held = self._grads.setdefault(id(node), {})
        if at in held:
            self._session.deriving = "to add up the gradients of a tensor that is used twice"
            grad = held[at] + grad
        held[at] = grad

    def _call(self, node: Any, grads: dict[int, torch.Tensor]) -> list[tuple[Edge, torch.Tensor | None]]:
        """Call a node: its edges on the way, each with its gradient."""
        edges = [(at, edge) for at, edge in enumerate(node.next_functions) if id(edge[0]) in self._nodes]
        if not edges:
            return []
        got = self._answer(node, grads) if grads else (None,) * len(node.next_functions)
        self._session.deriving = f"to give the gradients of {node.name()} the shape of its arguments"
        return [(edge, _fitted(node, at, got[at], edge[0]._input_metadata[edge[1]])) for at, edge in edges]

    def _answer(self, node: Any, grads: dict[int, torch.Tensor]) -> tuple[Any, ...]:
        """What a node returns, one gradient for each of its edges."""
        values = [grads.get(at) for at in range(len(node._input_metadata))]
        if not isinstance(node, BackwardCFunction):
            self._session.deriving = f"in {node.name()}, the backward pass of what forward does with torch"
            got = node(*values)
            return got if isinstance(got, tuple) else (got,)
        self._session.deriving = ""
        got = node.apply(*(self._zeros(node, at) if value is None else value for at, value in enumerate(values)))
        got = got if isinstance(got, tuple) else (got,)
        # Of all arguments, which need not be tensors; only tensors have edges.
        needed = [at for at, need in enumerate(node.needs_input_grad) if need]
        count = len(node.needs_input_grad)
        if len(got) < count or any(extra is not None for extra in got[count:]):
            raise RuntimeError(
                f"function {node.name()} returned {len(got)} gradients for the {count} arguments of forward"
            )
        own = iter(got[at] for at in needed)
        return tuple(None if following is None else next(own) for following, _ in node.next_functions)

    def _zeros(self, node: Any, at: int) -> torch.Tensor | None:
        """What a backward gets for an output that nothing depends on."""
        if node in self._session.sparse_contexts:
            return None
        like = node._input_metadata[at]
        return torch.zeros(tuple(like.shape), dtype=like.dtype, device=self._session.card.device)


def _fitted(node: Any, at: int, grad: Any, like: Any) -> torch.Tensor | None:
    """A gradient in the shape and dtype of what it is the gradient of. Raises what the engine raises."""
    if grad is None:
        return None
    if not isinstance(grad, torch.Tensor):
        raise TypeError(f"{node.name()} returns a {type(grad).__name__} as gradient at index {at}, not a tensor")
    shape = tuple(like.shape)
    if tuple(grad.shape) != shape:
        try:
            fits = torch.broadcast_shapes(grad.shape, shape) == grad.shape
        except RuntimeError:
            fits = False
        if not fits:
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {at} - got {list(grad.shape)} but "
                f"expected shape compatible with {list(shape)}"
            )
        grad = grad.sum_to_size(shape)
    return grad if grad.dtype == like.dtype else grad.to(like.dtype)
