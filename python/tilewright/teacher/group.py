"""Which nodes share a kernel.

A group has one domain: `flat` elements, cut at some boundaries into dimensions. Element-wise nodes join the group that
made what they read, if they read it in its own order; so they become epilogues of products and convolutions, and
parts of row kernels. Reductions over the same dimensions of the same domain share a row kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewright.teacher import ir
from tilewright.teacher.device import device_of
from tilewright.teacher.ir import Node, Pointwise, Read, Reduce, Scan, Template, Value, View
from tilewright.teacher.sizes import Size, Sizes

PERSISTENT = 16384
"""Elements of a tile that a row kernel keeps in registers at most."""


@dataclass(eq=False)
class Group:
    kind: str  # loop, rows, template, scan
    nodes: list[Node]
    flat: Size
    """Elements of the domain."""
    shape: tuple[Size, ...]
    reduced: tuple[int, ...] = ()
    """Dimensions of `shape` that a row kernel reduces."""
    outer: Size | None = None
    """Elements of a row kernel's results."""
    split: bool = False
    stored: list[Value] = field(default_factory=list)

    def makes(self, value: Value) -> bool:
        return value.node in self.nodes

    def level(self, node: Node) -> str:
        """Whether a node works on elements of the domain or on a row kernel's results."""
        if isinstance(node, Reduce):
            return "row"
        return "row" if node in self.row_nodes else "full"

    row_nodes: list[Node] = field(default_factory=list)


class Grouper:
    def __init__(self, sizes: Sizes, options: dict[str, Any]) -> None:
        self.sizes = sizes
        self.fuse = options.get("fuse", True)
        self.fill = device_of(options).processors
        self.groups: list[Group] = []
        self.home: dict[int, Group] = {}

    def run(self, nodes: list[Node], results: list[Value]) -> list[Group]:
        """Groups in an order in which they can run. Values that are used elsewhere are stored."""
        for node in nodes:
            self.place(node)
        self.mark_stored(results)
        return self.groups

    def mark_stored(self, results: list[Value]) -> None:
        keep = {id(v) for v in results}
        for group in self.groups:
            for node in group.nodes:
                for value in node.inputs():
                    maker = self.home.get(id(value.node)) if value.node else None
                    if maker is not None and maker is not group:
                        keep.add(id(value))
        for group in self.groups:
            group.stored = [v for node in group.nodes for v in node.outs if id(v) in keep or v.into is not None]

    def place(self, node: Node) -> None:
        """Puts a node into a group that exists, or into its own."""
        group = None
        if self.fuse or isinstance(node, Reduce):
            for candidate in self.candidates(node):
                if self.join(candidate, node):
                    group = candidate
                    break
        if group is None:
            group = self.new(node)
            self.groups.append(group)
        self.home[id(node)] = group

    def candidates(self, node: Node) -> list[Group]:
        """Groups that made an input, latest first; for reductions, also those with the same inputs."""
        makers = [self.home[id(v.node)] for v in node.inputs() if v.node is not None]
        found = sorted(set(makers), key=lambda g: -self.groups.index(g))
        if isinstance(node, Reduce):
            mine = {id(v) for v in node.inputs()}
            for group in reversed(self.groups):
                shares = any(id(v) in mine for n in group.nodes for v in n.inputs())
                if group.kind == "rows" and group not in found and shares:
                    found.append(group)
        return found

    def new(self, node: Node) -> Group:
        if isinstance(node, Pointwise):
            return Group("loop", [node], node.outs[0].numel(), node.outs[0].shape)
        if isinstance(node, Reduce):
            group = Group("rows", [node], self.sizes.product(node.shape), node.shape, node.dims)
            group.outer = node.outs[0].numel()
            group.split = self.splits(group)
            return group
        kind = "scan" if isinstance(node, Scan) else "template"
        return Group(kind, [node], node.outs[0].numel(), node.outs[0].shape)

    def splits(self, group: Group) -> bool:
        """Whether there are too few rows to fill a device, and each is long."""
        rows = self.sizes.of(group.outer)[0]
        total = self.sizes.of(group.flat)[0]
        length = total // max(rows, 1)
        return length >= 32768 and rows < self.fill and total >= 1 << 18

    # joining ------------------------------------------------------------------------------------------------------

    def join(self, group: Group, node: Node) -> bool:
        """Adds a node to a group if it fits."""
        if not self.order_allows(group, node) or len(group.nodes) > 40:
            return False
        if group.kind == "scan" or isinstance(node, Template | Scan):
            return False
        if isinstance(node, Reduce):
            return self.join_reduce(group, node)
        return self.join_pointwise(group, node)

    def order_allows(self, group: Group, node: Node) -> bool:
        """Every other input must be there before the group runs."""
        at = self.groups.index(group)
        for value in node.inputs():
            if value.node is None:
                continue
            maker = self.home[id(value.node)]
            if maker is not group and self.groups.index(maker) > at:
                return False
        out = node.outs[0]
        if out.into is not None:
            return all(
                g is group or not any(v is out.into for n in g.nodes for v in n.inputs()) for g in self.groups[at:]
            )
        return True

    def join_pointwise(self, group: Group, node: Pointwise) -> bool:
        out = node.outs[0]
        numel = out.numel()
        full = self.sizes.same(numel, group.flat)
        row = group.kind == "rows" and self.sizes.same(numel, group.outer)
        if group.kind == "rows" and self.sizes.same(group.flat, group.outer):
            full = False
        if group.split and not row:
            return False
        if group.kind == "template" and group.nodes[0].kind in EPILOGUE_FREE:
            return False
        if row and not full:
            if self.reads_fit(group, node, "row"):
                group.nodes.append(node)
                group.row_nodes.append(node)
                return True
            return False
        if full and self.reads_fit(group, node, "full"):
            group.nodes.append(node)
            return True
        return False

    def join_reduce(self, group: Group, node: Reduce) -> bool:
        if not self.sizes.same(self.sizes.product(node.shape), group.flat):
            return False
        if group.kind == "loop":
            trial = Group("rows", group.nodes, group.flat, node.shape, node.dims, node.outs[0].numel())
            trial.split = self.splits(trial)
            if trial.split or not self.reads_fit(trial, node, "full") or not self.aligned(trial):
                return False
            group.kind, group.shape, group.reduced, group.outer = "rows", node.shape, node.dims, trial.outer
            group.nodes.append(node)
            return True
        if group.kind != "rows" or not self.same_rows(group, node):
            return False
        if group.split and any(group.makes(v) for v in node.inputs()):
            return False
        if not self.reads_fit(group, node, "full"):
            return False
        group.nodes.append(node)
        return True

    def same_rows(self, group: Group, node: Reduce) -> bool:
        """Whether a reduction covers the same elements: the same boundaries, up to merged dimensions."""
        return self.signature(group.shape, group.reduced) == self.signature(node.shape, node.dims)

    def signature(self, shape: tuple[Size, ...], reduced: tuple[int, ...]) -> list[tuple[bool, tuple[int, ...]]]:
        """Runs of reduced and kept dimensions with their extents."""
        runs: list[tuple[bool, Size]] = []
        for d, size in enumerate(shape):
            if self.sizes.is_one(size):
                continue
            flag = d in reduced
            if runs and runs[-1][0] == flag:
                runs[-1] = (flag, runs[-1][1] * size)
            else:
                runs.append((flag, size))
        return [(flag, self.sizes.of(size)) for flag, size in runs]

    def reads_fit(self, group: Group, node: Node, level: str) -> bool:
        """Whether a node reads the group's own values element by element, in the group's order."""
        for term in node.terms():
            for gather in ir.gathers(term):
                if group.makes(gather.value):
                    return False
            for read in ir.reads(term):
                value = read.view.value
                if not group.makes(value):
                    continue
                if not self.read_fits(group, node, read, level):
                    return False
        try:
            if level == "full":
                self.dims_of(group, node)
        except Misfit:
            return False
        return True

    def read_fits(self, group: Group, node: Node, read: Read, level: str) -> bool:
        value, view = read.view.value, read.view
        made = group.level(value.node)
        if made == "full":
            return level == "full" and plain(view, self.sizes)
        if level == "row":
            return plain(view, self.sizes)
        return row_read(group, view, self.sizes)

    def aligned(self, group: Group) -> bool:
        try:
            self.dims_of(group, group.nodes[0])
        except Misfit:
            return False
        return True

    def dims_of(self, group: Group, node: Node | None = None) -> Dims:
        """The group's dimensions, with those that a further node needs."""
        nodes = group.nodes if node is None or node in group.nodes else [*group.nodes, node]
        return dims_of(group, nodes, self.sizes)


EPILOGUE_FREE = {"recurrent", "scatter_add", "sort"}


class Misfit(Exception):
    """Boundaries that do not divide each other."""


@dataclass
class Dims:
    """The dimensions of a domain, outer to inner."""

    sizes: list[Size]
    reduced: list[bool]


def boundaries(sizes_of: list[Size], table: Sizes, base: Size = ir.ONE) -> dict[tuple[int, ...], Size]:
    """Products of trailing extents."""
    found, step = {}, base
    for size in reversed(sizes_of):
        step = step * size
        found.setdefault(table.of(step), step)
    return found


def domain_lists(node: Node) -> list[list[Size]]:
    """The extents, outer to inner, that the views of a node index."""
    lists = [list(node.shape)] if isinstance(node, Reduce | Scan) else [list(node.outs[0].shape)]
    for term in node.terms():
        for read in ir.reads(term):
            lists.append([atom.size for axis in read.view.axes for atom in axis])
    return lists


def dims_of(group: Group, nodes: list[Node], table: Sizes) -> Dims:
    """Common refinement of all members' dimensions. Raises `Misfit`."""
    cuts: dict[tuple[int, ...], Size] = {}
    for node in nodes:
        if group.level(node) == "row" and not isinstance(node, Reduce):
            continue  # works on rows: its boundaries are lifted by the emitter
        for extents in domain_lists(node):
            for values, size in boundaries(extents, table).items():
                cuts.setdefault(values, size)
    for values, size in boundaries(list(group.shape), table).items():
        cuts.setdefault(values, size)
    return cut_dims(cuts, table, reduced_ranges(group, table))


def reduced_ranges(group: Group, table: Sizes) -> list[tuple[Size, Size]]:
    """For each reduced dimension: the products of extents inside of it, and up to it."""
    ranges, step = [], ir.ONE
    for d in range(len(group.shape) - 1, -1, -1):
        if d in group.reduced:
            ranges.append((step, step * group.shape[d]))
        step = step * group.shape[d]
    return ranges


def cut_dims(cuts: dict[tuple[int, ...], Size], table: Sizes, reduced: list[tuple[Size, Size]]) -> Dims:
    order = sorted(cuts.items(), key=lambda item: item[0])
    sizes, flags = [], []
    below: tuple[tuple[int, ...], Size] = ((1,) * table.cases, ir.ONE)
    for values, size in order:
        if values == below[0]:
            continue
        if any(v % w or v < w for v, w in zip(values, below[0], strict=True) if w):
            raise Misfit
        sizes.append(table.quotient(size, below[1]))
        inside = [
            all(a <= w for a, w in zip(table.of(low), below[0], strict=True))
            and all(v <= b for v, b in zip(values, table.of(high), strict=True))
            for low, high in reduced
        ]
        flags.append(any(inside))
        below = (values, size)
    return Dims(sizes[::-1], flags[::-1])


def plain(view: View, table: Sizes) -> bool:
    """Whether a view is its whole value in order, by values in all cases."""
    if view.guards:
        return False
    offset, step = view.offset(), ir.ONE
    if table.of(offset.const) != (0,) * table.cases:
        return False
    for atom in reversed([a for axis in view.axes for a in axis]):
        if not table.same(offset.terms.get(atom, ir.ZERO), step):
            return False
        step = step * atom.size
    return table.same(step, view.value.numel())


def row_read(group: Group, view: View, table: Sizes) -> bool:
    """Whether a view of full extent reads a row's result at the element's own row."""
    if view.guards:
        return False
    offset = view.offset()
    if table.of(offset.const) != (0,) * table.cases:
        return False
    ranges = [(table.of(a), table.of(b)) for a, b in reduced_ranges(group, table)]
    step, stride = ir.ONE, ir.ONE
    for atom in reversed([a for axis in view.axes for a in axis]):
        low, high = table.of(step), table.of(step * atom.size)
        step = step * atom.size
        coefficient = offset.terms.get(atom, ir.ZERO)
        if low == high:
            continue
        inside = any(
            all(x <= y for x, y in zip(a, low, strict=True)) and all(x >= y for x, y in zip(b, high, strict=True))
            for a, b in ranges
        )
        if inside:
            if coefficient != 0:
                return False
        else:
            if any(
                all(x < y for x, y in zip(low, b, strict=True)) and all(x < y for x, y in zip(a, high, strict=True))
                for a, b in ranges
            ):
                return False
            if not table.same(coefficient, stride):
                return False
            stride = stride * atom.size
    return table.same(stride, view.value.numel())
