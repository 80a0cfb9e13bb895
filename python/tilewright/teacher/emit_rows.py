"""Kernels of row groups: reductions with all that is fused around them."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.teacher import sizes
from tilewright.teacher.group import Group
from tilewright.teacher.ir import Node, Op, Read, Reduce, Value
from tilewright.teacher.launch import Launch, describe, finish, store
from tilewright.teacher.layout import Layout, axis_name, decode, is_wide
from tilewright.teacher.sizes import Sizes
from tilewright.teacher.writer import TL, Space, Writer, compute_dtype

IDENTITY = {
    "sum": "0.0",
    "prod": "1.0",
    "max": 'float("-inf")',
    "min": 'float("inf")',
    "any": "0",
    "all": "1",
    "argmax": 'float("-inf")',
    "argmin": 'float("inf")',
    "moments": "0.0",
}
COMBINE = {
    "sum": "{0} + {1}",
    "prod": "{0} * {1}",
    "any": "{0} | {1}",
    "all": "{0} & {1}",
}
LIMITS = {torch.int64: 2**63, torch.int32: 2**31, torch.int16: 2**15, torch.int8: 2**7}


def identity(kind: str, dtype: torch.dtype) -> str:
    """What a masked element counts as."""
    if kind in ("max", "min", "argmax", "argmin") and not dtype.is_floating_point:
        if dtype == torch.bool:
            return "0" if "max" in kind else "1"
        if dtype == torch.uint8:
            return "0" if "max" in kind else "255"
        return str(-LIMITS[dtype] if "max" in kind else LIMITS[dtype] - 1)
    if kind in ("sum", "prod") and not dtype.is_floating_point:
        return "0" if kind == "sum" else "1"
    return IDENTITY[kind]


def keeps_nan(node: Reduce) -> bool:
    """Whether an extreme is NaN where an element is: Triton's own leave it out."""
    return node.kind in ("max", "min") and node.keeps_nan and node.term.dtype.is_floating_point


class Rows:
    """A row kernel being written. `form`: rows (one row a program), tile (several rows), serial (one row a lane)."""

    def __init__(self, group: Group, table: Sizes, options: dict[str, Any]) -> None:
        self.group, self.table, self.options = group, table, options
        self.layout = Layout(group, table)
        layout = self.layout
        self.nx = table.product(s for _, s in layout.x)
        self.nr = table.product(s for _, s in layout.r)
        self.choose()
        self.writer = Writer(table, static=len(layout.x) > 1 or len(layout.r) > 1)
        self.levels = self.find_levels()
        self.row_values: dict[int, str] = {}
        self.best: dict[int, str] = {}
        self.present = ""
        """How many elements a program of a split reduction has seen; empty: all."""
        self.partials: dict[int, list[Value]] = {}

    # decisions ----------------------------------------------------------------------------------------------------

    def choose(self) -> None:
        """The form of the kernel and its block sizes, by the default case's sizes."""
        table, layout = self.table, self.layout
        length = max(table.of(self.nr))
        power = 1 << max(0, (length - 1).bit_length())
        rows = table.of(self.nx)[0]
        kept_inside = bool(layout.x) and (not layout.r or layout.x[-1][0] > layout.r[-1][0])
        # Whether elements are read again once their row's result is known.
        again = any(self.group.level(v.node) == "full" for v in self.group.stored)
        if length <= 128 and rows >= 64 and (len(layout.r) > 1 or length <= 8 or (kept_inside and not again)):
            self.form, self.block_x, self.block_r = "serial", 128 if rows < 1 << 17 else 256, 1
            self.persistent = False
        elif kept_inside:
            self.form = "tile"
            self.persistent = power <= 256 and self.options.get("persistent", 1) > 0
            self.block_r = power if self.persistent else self.options.get("block_r", 64)
            self.block_x = 64 if self.block_r <= 64 and rows >= 1 << 16 else 32
            if self.block_r > 128:
                self.block_x = 16
            self.block_x = self.options.get("block_x", self.block_x)
        else:
            most = 8192 if not again and self.reads_once() else 65536 if self.reads_few() else 16384
            self.persistent = power <= self.options.get("persistent", most)
            if power <= 512 and self.persistent and layout.x:
                self.form, self.block_x, self.block_r = "tile", min(32, max(1, 1024 // max(power, 1))), power
            else:
                self.form, self.block_x = "rows", 1
                self.block_r = (
                    power if self.persistent else self.options.get("row_block", 4096 if most == 8192 else 2048)
                )

    def reads_once(self) -> bool:
        """Whether one sweep gives all reductions: then registers that hold a row only keep other programs away."""
        reductions = [n for n in self.group.nodes if isinstance(n, Reduce)]
        made = {id(v) for n in reductions for v in n.outs}
        read = {id(v) for n in self.group.nodes if n not in self.group.row_nodes for v in n.inputs()}
        return not made & read and all(n.kind != "moments" for n in reductions)

    def reads_few(self) -> bool:
        """Whether few enough tensors are read for each element that long rows fit into registers."""
        values = {id(v) for n in self.group.nodes for v in n.inputs() if not self.group.makes(v)}
        return len(values) <= 4 and len(self.layout.r) == 1

    def find_levels(self) -> dict[int, int]:
        """For each node, how many reductions come before it in a chain."""
        found: dict[int, int] = {}
        for node in self.group.nodes:
            level = 0
            for value in node.inputs():
                if self.group.makes(value):
                    before = found[id(value.node)]
                    level = max(level, before + (1 if isinstance(value.node, Reduce) else 0))
            found[id(node)] = level
        return found

    # writing ------------------------------------------------------------------------------------------------------

    def emit(self) -> list[Launch]:
        if self.group.split:
            from tilewright.teacher.emit_split import emit_split

            return emit_split(self)
        self.open()
        depth = max(self.levels[id(n)] for n in self.group.nodes if isinstance(n, Reduce)) + 1
        last = max(self.levels.values())
        one_pass = self.persistent
        self.prepare_space()
        shared = self.element_space() if one_pass else None
        for level in range(max(depth, last) + 1):
            self.level_pass(level, shared)
        blocks = self.block_x
        if self.form == "rows":
            grid = f"({sizes.text(self.nx)},)"
        else:
            grid = f"(triton.cdiv({sizes.text(self.nx)}, {blocks}),)"
        doc = (
            f"{describe(self.group.nodes)}: "
            + {
                "rows": "one program a row" + (", held in registers." if self.persistent else ", in blocks."),
                "tile": "a block of rows a program.",
                "serial": "one result a lane, its elements one after the other.",
            }[self.form]
        )
        options = {"num_warps": self.warps()}
        return [finish(self.writer, self.group, grid, doc, options)]

    def warps(self) -> int:
        elements = self.block_x * self.block_r
        return 4 if elements < 4096 else 8 if elements < 16384 else 16 if elements < 65536 else 32

    def open(self) -> None:
        """Index lines and masks that all passes share."""
        w, layout = self.writer, self.layout
        w.in_group = self.in_group
        w.row_level = lambda v: self.form != "serial" and self.group.makes(v) and self.group.level(v.node) == "row"
        w.place = lambda lin, view, space: layout.place(lin, view.axes, space.level)
        w.counts([t for n in self.group.nodes for t in n.terms()])
        wide = ".to(tl.int64)" if self.form == "rows" or is_wide(self.group, self.table) else ""
        self.x_index: dict[int, str] = {}
        self.x_mask = ""
        row = w.name("row")
        if self.form == "rows":
            w.line(f"{row} = tl.program_id(0){wide}" if layout.x else f"{row} = 0")
            self.row_mask = ""
        else:
            block = w.constexpr("BLOCK_ROWS" if self.form == "tile" else "BLOCK", str(self.block_x))
            suffix = "[:, None]" if self.form == "tile" else ""
            w.line(f"{row} = tl.program_id(0){wide} * {block} + tl.arange(0, {block}){suffix}")
            rows = w.name("rows")
            from tilewright.teacher.writer import Arg

            w.args.append(Arg(rows, self.nx, "size"))
            self.x_mask = w.assign("row_mask", f"{row} < {rows}")
        self.row = row
        decode(w, layout.x, row, axis_name, self.x_index)
        if self.form != "serial":
            suffix = "[None, :]" if self.form == "tile" else ""
            self.block = w.constexpr("BLOCK_COLS" if self.form == "tile" else "BLOCK", str(self.block_r))
            if self.persistent:
                longest = f"triton.next_power_of_2({sizes.text(self.nr)})"
                for arg in w.args:
                    if arg.name == self.block:
                        arg.host = (
                            longest
                            if len(set(self.table.of(self.nr))) > 1 or not self.nr.is_Integer
                            else str(self.block_r)
                        )
            self.lane = f"tl.arange(0, {self.block}){suffix}"
        self.length = w.size(self.nr)

    def prepare_space(self) -> None:
        self.rows_space = Space(dict(self.x_index), self.x_mask, "row")

    def element_space(self, start: str | None = None) -> Space:
        """Indices and masks of elements: of all (persistent) or of a block from `start` on."""
        w = self.writer
        space = Space(dict(self.x_index), "", "full")
        row = self.rows_space
        if self.form != "serial" and self.layout.x:
            # What a sweep reads of its row stays in the sweep: Triton's loops keep their names to themselves.
            space.parts = [row if start is None else Space(row.index, row.mask, "row", [], dict(row.cache))]
        if self.form == "serial":
            assert start is not None
            decode(w, self.layout.r, start, lambda at, n: ("tap", "tap", "tap")[min(at, 2)], space.index)
            space.mask = self.x_mask
            # What depends on the tap alone is one number for all lanes.
            space.parts = [Space({k: space.index[k] for k, _ in self.layout.r}, "", "full")]
            return space
        col = w.assign("col", self.lane if start is None else f"{start} + {self.lane}")
        mask = w.assign("mask", f"({col} < {self.length}) & {self.x_mask}" if self.x_mask else f"{col} < {self.length}")
        self.col_mask = mask
        decode(w, self.layout.r, col, axis_name, space.index)
        space.mask = mask
        return space

    def in_group(self, value: Value) -> Any:
        """How a term reads a value of this group."""
        if not self.group.makes(value):
            return None
        if id(value) in self.row_values:
            return lambda writer, term, space: self.row_values[id(value)]
        node = value.node
        if self.group.level(node) == "row":
            return lambda writer, term, space: self.row_term(node)
        return lambda writer, term, space: writer.term(node.term, space)

    def row_term(self, node: Node) -> str:
        """A value computed from rows' results."""
        out = node.outs[0]
        if id(out) not in self.row_values:
            self.row_values[id(out)] = self.writer.term(node.term, self.rows_space)
        return self.row_values[id(out)]

    def level_pass(self, level: int, shared: Space | None) -> None:
        """Reductions of one level, stores of elements that need no later one, then stores of rows."""
        reductions = [
            n
            for n in self.group.nodes
            if isinstance(n, Reduce) and self.levels[id(n)] == level and id(n.outs[0]) not in self.row_values
        ]
        stores = [
            v for v in self.group.stored if self.group.level(v.node) == "full" and self.levels[id(v.node)] == level
        ]
        if reductions or stores:
            if shared is not None:
                for node in reductions:
                    self.reduce_held(node, shared)
                self.store_elements(stores, shared)
            else:
                self.loop_pass(reductions, stores)
        for node in self.group.nodes:
            if node in self.group.row_nodes and self.levels[id(node)] == level + 1:
                self.row_term(node)
        for value in self.group.stored:
            if self.group.level(value.node) == "row":
                at = self.levels[id(value.node)] + (1 if isinstance(value.node, Reduce) else 0)
                if at == level + 1:
                    store(
                        self.writer, value, self.row if self.layout.x else "0", self.row_values[id(value)], self.x_mask
                    )

    def store_elements(self, stores: list[Value], space: Space) -> None:
        offset = self.layout.merged(self.layout.contiguous())
        for value in stores:
            text = self.writer.term(value.node.term, space)
            store(self.writer, value, self.writer.lin(offset, space.index), text, space.mask)

    def axis(self) -> str:
        return "axis=1, keep_dims=True" if self.form == "tile" else "axis=0"

    def masked_input(self, node: Reduce, space: Space, kind: str) -> str:
        """The element as the reduction sees it: neutral where there is none."""
        w = self.writer
        neutral = identity(kind, compute_dtype(node.term.dtype))
        plain_read = (
            isinstance(node.term, Read) and not node.term.view.guards and not self.group.makes(node.term.view.value)
        )
        if plain_read and kind in ("sum", "max", "min", "argmax", "argmin", "prod"):
            before = len(w.lines)
            text = w.term(node.term, space, neutral)
            if len(w.lines) > before and f"other={neutral}" in "".join(w.lines[before:]):
                return text
        else:
            text = w.term(node.term, space)
        if kind in ("any", "all"):
            text = f"({text}).to(tl.int32)"
        if not space.mask or self.form == "serial":
            return text
        return f"tl.where({space.mask}, {text}, {neutral})"

    def reduce_held(self, node: Reduce, space: Space) -> None:
        """A reduction of a tile in registers."""
        w, out = self.writer, node.outs[0]
        axis = self.axis()
        name = node.outs[0].name
        if node.kind == "moments":
            text = self.masked_input(node, space, "sum")
            mean = w.assign(name, f"tl.sum({text}, {axis}) / {self.length}")
            value = w.term(node.term, space)
            gap = w.assign("gap", f"tl.where({space.mask}, {value} - {mean}, 0.0)")
            squares = w.assign(node.outs[1].name, f"tl.sum({gap} * {gap}, {axis})")
            self.row_values[id(out)], self.row_values[id(node.outs[1])] = mean, squares
            return
        text = self.masked_input(node, space, node.kind)
        self.row_values[id(out)] = w.assign(name, self.fold(node, text, axis))

    def fold(self, node: Reduce, text: str, axis: str) -> str:
        """The reduction of a block along its axis."""
        kind = node.kind
        if kind == "sum" and not node.term.dtype.is_floating_point:
            return f"tl.sum({text}.to({TL[node.outs[0].dtype]}), {axis})"
        helper = "multiply" if kind == "prod" else {"max": "larger", "min": "smaller"}[kind] if keeps_nan(node) else ""
        if helper:
            self.writer.helpers.add(helper)
            return f"tl.reduce({text}, combine_fn={helper}, {axis})"
        if kind in ("any", "all"):
            return f"tl.{'max' if kind == 'any' else 'min'}({text}, {axis}) != 0"
        return f"tl.{kind}({text}, {axis})"

    def combined(self, node: Reduce, first: str, second: str) -> str:
        """The reduction of two elements."""
        if node.kind in COMBINE:
            return COMBINE[node.kind].format(first, second)
        nan = ", propagate_nan=tl.PropagateNan.ALL" if keeps_nan(node) else ""
        return f"tl.{node.kind}imum({first}, {second}{nan})"

    def loop_pass(self, reductions: list[Reduce], stores: list[Value]) -> None:
        """One sweep over the reduced elements."""
        state = [(n, self.start(n)) for n in reductions]
        sums = {id(n): (s, self.start(s)) for n in reductions if (s := self.sum_of(n)) is not None}
        with self.loop() as (space, step):
            for node, names in state:
                if id(node) in sums:
                    self.online_step(node, names[0], sums[id(node)][1][0], space)
                else:
                    self.step(node, names, space, step)
            self.store_elements(stores, space)
        for node, names in state:
            self.end(node, names)
            if id(node) in sums:
                self.online_end(node, names[0], *sums[id(node)])

    def sum_of(self, top: Reduce) -> Reduce | None:
        """The sum of exp(x - max) that one sweep can take beside the maximum."""
        if top.kind != "max" or not top.term.dtype.is_floating_point:
            return None
        for node in self.group.nodes:
            term = node.term if isinstance(node, Reduce) and node.kind == "sum" else None
            if not (isinstance(term, Op) and term.op == "exp" and isinstance(term.args[0], Op)):
                continue
            gap = term.args[0]
            same = gap.op == "sub" and gap.args[0] is top.term
            if same and isinstance(gap.args[1], Read) and gap.args[1].view.value is top.outs[0]:
                return node
        return None

    def online_step(self, node: Reduce, best: str, acc: str, space: Space) -> None:
        """Maximum so far, and the sum relative to it."""
        w = self.writer
        value = w.assign("value", self.masked_input(node, space, "max"))
        top = w.assign("new_max", f"tl.maximum({best}, {value})")
        w.line(f"{acc} = {acc} * tl.exp({best} - {top}) + tl.exp({value} - {top})")
        w.line(f'{acc} = tl.where({top} == float("-inf"), 0.0, {acc})')
        w.line(f"{best} = {top}")

    def online_end(self, node: Reduce, best: str, total: Reduce, names: list[str]) -> None:
        """The sum relative to the row's maximum."""
        w, top = self.writer, self.row_values[id(node.outs[0])]
        if self.form != "serial":
            w.line(f'{names[0]} = tl.where({best} == float("-inf"), 0.0, {names[0]} * tl.exp({best} - {top}))')
        self.end(total, names)

    def loop(self) -> Any:
        from contextlib import contextmanager

        @contextmanager
        def opened() -> Any:
            w = self.writer
            if self.form == "serial":
                r = w.name("r")
                if max(self.table.of(self.nr)) <= 32 and w.static:
                    head = f"for {r} in tl.static_range({self.length}):"
                else:
                    head = f"for {r} in range({self.length}):"
                with w.block(head):
                    yield self.element_space(r), r
            else:
                begin, end = self.bounds()
                at = w.name("start")
                with w.block(f"for {at} in range({begin}, {end}, {self.block}):"):
                    yield self.element_space(at), at

        return opened()

    def bounds(self) -> tuple[str, str]:
        return "0", self.length

    def shape(self) -> str:
        if self.form == "serial":
            return "(BLOCK,)"
        return f"(BLOCK_ROWS, {self.block})" if self.form == "tile" else f"({self.block},)"

    def start(self, node: Reduce) -> list[str]:
        """Accumulators, one for each lane."""
        w, shape = self.writer, self.shape()
        dtype = compute_dtype(node.term.dtype)
        if node.kind == "sum" and not dtype.is_floating_point:
            dtype = node.outs[0].dtype
        if node.kind == "moments":
            kind = TL[dtype]
            names = [w.name(n) for n in ("lane_mean", "lane_squares", "lane_count")]
            for n in names:
                w.line(f"{n} = tl.zeros({shape}, {kind})")
            return names
        if node.kind in ("any", "all"):
            acc = w.name(node.kind)
            w.line(f"{acc} = tl.full({shape}, {identity(node.kind, dtype)}, tl.int32)")
            return [acc]
        acc = w.name({"sum": "acc", "argmax": "best", "argmin": "best"}.get(node.kind, node.kind))
        w.line(f"{acc} = tl.full({shape}, {identity(node.kind, dtype)}, {TL[dtype]})")
        if node.kind.startswith("arg"):
            at = w.name("best_at")
            w.line(f"{at} = tl.zeros({shape}, tl.int64)")
            return [acc, at]
        return [acc]

    def step(self, node: Reduce, names: list[str], space: Space, start: str) -> None:
        w = self.writer
        if node.kind == "moments":
            mean, squares, number = names
            value = w.term(node.term, space)
            present = space.mask if self.form != "serial" else ""
            w.line(f"{number} += " + (f"{present}.to({TL[compute_dtype(node.term.dtype)]})" if present else "1.0"))
            gap = w.assign("gap", f"tl.where({present}, {value} - {mean}, 0.0)" if present else f"{value} - {mean}")
            w.line(f"{mean} += {gap} / tl.maximum({number}, 1.0)")
            again = f"tl.where({present}, {value} - {mean}, 0.0)" if present else f"({value} - {mean})"
            w.line(f"{squares} += {gap} * {again}")
            return
        text = self.masked_input(node, space, node.kind)
        acc = names[0]
        if node.kind.startswith("arg"):
            at = start if self.form == "serial" else f"{start} + {self.lane}"
            sign = ">" if node.kind == "argmax" else "<"
            value = w.assign("value", text)
            better = w.assign("better", f"{value} {sign} {acc}")
            w.line(f"{names[1]} = tl.where({better}, {at}, {names[1]})")
            w.line(f"{acc} = tl.where({better}, {value}, {acc})")
            return
        if node.kind == "sum":
            w.line(f"{acc} += {text}")
        else:
            w.line(f"{acc} = {self.combined(node, acc, text)}")

    def end(self, node: Reduce, names: list[str]) -> None:
        """From lanes to the row's result."""
        w, out, axis = self.writer, node.outs[0], self.axis()
        if self.form == "serial":
            result = names[1] if node.kind.startswith("arg") else names[0]
            if node.kind in ("any", "all"):
                result = w.assign(out.name, f"{result} != 0")
            self.row_values[id(out)] = result
            if node.kind == "moments":
                self.row_values[id(node.outs[1])] = names[1]
            return
        if node.kind == "moments":
            mean, squares, number = names
            total = w.assign(out.name, f"tl.sum({mean} * {number}, {axis}) / {self.present or self.length}")
            gap = w.assign("lane_gap", f"{mean} - {total}")
            both = w.assign(node.outs[1].name, f"tl.sum({squares} + {number} * {gap} * {gap}, {axis})")
            self.row_values[id(out)], self.row_values[id(node.outs[1])] = total, both
            return
        if node.kind.startswith("arg"):
            best = w.assign("top", f"tl.{node.kind[3:]}({names[0]}, {axis})")
            self.best[id(node)] = best
            first = f"tl.min(tl.where({names[0]} == {best}, {names[1]}, {self.length}), {axis})"
            self.row_values[id(out)] = w.assign(out.name, first)
            return
        # Sums of integers are in the result's dtype already.
        text = f"tl.sum({names[0]}, {axis})" if node.kind == "sum" else self.fold(node, names[0], axis)
        self.row_values[id(out)] = w.assign(out.name, text)


def emit_rows(group: Group, table: Sizes, options: dict[str, Any]) -> list[Launch]:
    return Rows(group, table, options).emit()


__all__ = ["emit_rows"]
