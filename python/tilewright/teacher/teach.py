"""Candidates for a problem. See docs/design/teacher.md."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

from tilewright.cell.oracle_problem import ProblemError
from tilewright.teacher.capture import Problem, capture
from tilewright.teacher.emit_loop import emit_loop
from tilewright.teacher.emit_pairs import emit_pairs
from tilewright.teacher.emit_rows import emit_rows
from tilewright.teacher.group import Group, Grouper, Misfit
from tilewright.teacher.host import HostWriter, result_text
from tilewright.teacher.ir import Lazy, Node, NotAffine, Pointwise, Read, Value
from tilewright.teacher.launch import Launch
from tilewright.teacher.lower import Diverging, Lowering
from tilewright.teacher.sizes import Sizes, Unsupported


@dataclass
class Taught:
    """One candidate."""

    variant: str
    source: str
    about: str


def write(problem: Problem, options: dict[str, Any]) -> str:
    """The text of a candidate. Raises `Unsupported` with the reason if there is none."""
    if problem.cases[0].backward is not None:
        from tilewright.teacher import gradients

        return gradients.write(problem, options)
    try:
        return write_paths(problem, options, paths(problem))
    except Unsupported:
        if len(problem.cases) == 1:
            raise
        try:
            return write_paths(problem, options, apart(problem))
        except Unsupported:
            pass
        raise


def write_paths(problem: Problem, options: dict[str, Any], parts: list[tuple[str, Problem]]) -> str:
    """The file, with a branch of `forward` for each part."""
    host, forward = None, []
    for condition, part in parts:
        host, lines = write_path(part, options, host)
        forward += [f"if {condition}:", *("    " + line for line in lines)] if condition else lines
    assert host is not None
    if not forward[-1].startswith("return"):
        forward.append('raise ValueError("no kernels were written for these arguments")')
    doc = f"{summary(problem)}\n\nWritten by Tilewright's offline teacher: {len(host.kernels)} kernel(s)."
    return host.source(forward, doc.replace('"""', "'''") + "\n")


def paths(problem: Problem) -> list[tuple[str, Problem]]:
    """Cases with equal graphs together, and the condition on an argument of the constructor that picks them."""
    parts: dict[tuple[str, ...], list[Any]] = {}
    for case in problem.cases:
        parts.setdefault(tuple(str(n.target) for n in case.graph.graph.nodes), []).append(case)
    if len(parts) == 1:
        return [("", problem)]
    for name in problem.cases[0].numbers_args:
        values = [sorted({case.numbers_args.get(name) for case in cases}, key=str) for cases in parts.values()]
        flat = [v for part in values for v in part]
        if "[" not in name and None not in flat and len(set(flat)) == len(flat):
            conditions = [" or ".join(f"self.{name}_chosen == {v!r}" for v in part) for part in values]
            return [(c, replace(problem, cases=cases)) for c, cases in zip(conditions, parts.values(), strict=True)]
    raise Unsupported("the problem's cases take different paths through forward")


def apart(problem: Problem) -> list[tuple[str, Problem]]:
    """Each case by itself, where the extents of its inputs tell it from the others."""
    features: dict[str, tuple[int, ...]] = {}
    for at, path in enumerate(problem.cases[0].tensor_paths):
        shapes = [tuple(int(n) for n in case.inputs[at].shape) for case in problem.cases]
        if len({len(s) for s in shapes}) == 1:
            features |= {f"{path}.shape[{d}]": tuple(s[d] for s in shapes) for d in range(len(shapes[0]))}
    varying = {name: values for name, values in features.items() if len(set(values)) > 1}
    single = next((name for name, values in varying.items() if len(set(values)) == len(values)), None)
    chosen = [single] if single else list(varying)
    keys = [tuple(varying[name][i] for name in chosen) for i in range(len(problem.cases))]
    if len(set(keys)) < len(keys):
        raise Unsupported("the problem's cases take different paths through forward, at equal shapes")
    conditions = [" and ".join(f"{n} == {v}" for n, v in zip(chosen, key, strict=True)) for key in keys]
    return [(c, replace(problem, cases=[case])) for c, case in zip(conditions, problem.cases, strict=True)]


def write_path(problem: Problem, options: dict[str, Any], before: HostWriter | None) -> tuple[HostWriter, list[str]]:
    """One path through `forward`: its lines, with the kernels added to those of the paths before."""
    host, texts = launches(problem, options, before)
    lines = host.forward_lines(result_text(host.lowering, texts))
    if before:
        host.libdevice |= before.libdevice
        host.allocator |= before.allocator
    return host, lines


def launches(problem: Problem, options: dict[str, Any], before: HostWriter | None) -> tuple[HostWriter, list[str]]:
    """All launches of one path, and the texts of its results."""
    lowering = Lowering(problem, options)
    try:
        results = lowering.run()
    except Diverging:
        raise Unsupported("the problem's cases take different paths through forward") from None
    except NotAffine:
        raise Unsupported(f"a view of the result of {lowering.label} that no index formula gives") from None
    outputs = finish_results(lowering, results)
    lowering.nodes = needed(lowering.nodes, [v for v, _ in outputs])
    try:
        groups = live(Grouper(lowering.sizes, options).run(lowering.nodes, [v for v, _ in outputs]))
        host = before.branch(lowering) if before else HostWriter(lowering)
        for group in groups:
            for launch in emit(group, lowering.sizes, options):
                host.call(launch)
    except Misfit:  # of one operation, for several that do not fit are no group
        raise Unsupported("a tensor whose elements no dimensions of a kernel give: one without any, for one") from None
    return host, [output_text(host, value, shape) for value, shape in outputs]


def summary(problem: Problem) -> str:
    """First line of the problem's docstring, or its name."""
    doc = ast.get_docstring(ast.parse(problem.source))
    return (doc or "A Triton implementation of the reference module.").strip().splitlines()[0]


def emit(group: Group, table: Sizes, options: dict[str, Any]) -> list[Launch]:
    if group.kind == "loop":
        return [emit_loop(group, table, options)]
    if group.kind == "rows":
        return emit_pairs(group, table, options) or emit_rows(group, table, options)
    from tilewright.teacher import emit_template

    return emit_template.emit(group, table, options)


def needed(nodes: list[Node], results: list[Value]) -> list[Node]:
    """Nodes that something depends on."""
    wanted = {id(v) for v in results}
    kept: list[Node] = []
    for node in reversed(nodes):
        if any(id(v) in wanted or v.into is not None for v in node.outs):
            kept.append(node)
            wanted |= {id(v) for v in node.inputs()}
    return kept[::-1]


def live(groups: list[Group]) -> list[Group]:
    """Groups that store something."""
    return [g for g in groups if g.stored]


def finish_results(lowering: Lowering, results: list[Lazy]) -> list[tuple[Value, Any]]:
    """Writes results and changed state to memory: value and shape of each result."""
    written: dict[int, Value] = {}
    for base, lazy in lowering.mutated.values():
        value = own_value(lowering, lazy, base)
        value.into = base
        written[id(lazy.term)] = value
    outputs = []
    for lazy in results:
        lowering.label = lowering.label or "result"
        if isinstance(lazy.term, Read) and lazy.term.view.is_plain() and lazy.term.view.value.origin != "iota":
            value = lazy.term.view.value
            if value.origin in ("input", "state") and id(value) not in {id(b) for b, _ in lowering.mutated.values()}:
                value = lowering.realise_again(lazy).term.view.value
            outputs.append((value, lazy.shape))
            continue
        value = lowering.realise_again(lazy).term.view.value
        outputs.append((value, lazy.shape))
    return outputs


def own_value(lowering: Lowering, lazy: Lazy, base: Value) -> Value:
    """The value in memory that is copied nowhere else and can be written in place of another."""
    term = lazy.term
    if isinstance(term, Read) and term.view.is_plain() and isinstance(term.view.value.node, Pointwise):
        value = term.view.value
        if value.into is None and value.dtype == base.dtype:
            return value
    return lowering.realise_again(lowering.cast(lazy, base.dtype)).term.view.value


def output_text(host: HostWriter, value: Value, shape: Any) -> str:
    name = host.variable(value)
    same = host.lowering.sizes.same
    if len(shape) == len(value.shape) and all(same(a, b) for a, b in zip(shape, value.shape, strict=True)):
        return name
    return f"{name}.view({', '.join(host.size(s) for s in shape) or '()'})"


VARIANTS: list[tuple[str, dict[str, Any], str]] = [
    ("default", {}, "fused where the graph allows it"),
    ("tf32x3", {"precision": "tf32x3"}, "products of fp32 as three products of tf32 on tensor cores"),
    ("ieee", {"precision": "ieee"}, "products of fp32 without tensor cores"),
    ("unrounded", {"rounded": False}, "halves keep float32 between operations of a kernel"),
    ("tile-64x64", {"tile": (64, 64, 32, 4, 3), "conv_tile": (64, 64, 32, 4, 3)}, "tiles of 64 x 64"),
    ("tile-128x64", {"tile": (128, 64, 32, 4, 3), "conv_tile": (128, 64, 32, 4, 3)}, "tiles of 128 x 64"),
    ("tile-128x128", {"tile": (128, 128, 64, 8, 3), "conv_tile": (128, 128, 32, 8, 3)}, "tiles of 128 x 128"),
    ("tile-128x256", {"tile": (128, 256, 64, 8, 3), "conv_tile": (256, 64, 32, 8, 2)}, "tiles of 128 x 256"),
    ("split-k", {"split_k": 4}, "the inner dimension of products in four parts"),
    ("one-part", {"split_k": 1}, "the inner dimension of products in one part"),
    ("flat-taps", {"flat_taps": True}, "convolutions: channels and taps as one inner dimension"),
    ("tap-loop", {"flat_taps": False}, "convolutions: a loop over taps around one over channels"),
    ("descriptors", {"descriptors": True}, "operands of products through tensor descriptors"),
    ("pointers", {"descriptors": False}, "operands of products through pointers"),
    ("resident", {"resident": True}, "products by one program a multiprocessor, tile after tile"),
    ("specialised", {"specialised": True}, "the same, with warps of their own for the copies"),
    ("row-order", {"grouped": False}, "tiles of a product in row order"),
    ("scores-in-memory", {"fused_attention": False}, "attention as product, softmax, product"),
    ("loop-4096", {"loop_block": 4096}, "4096 elements a program in element-wise kernels"),
    ("rows-in-blocks", {"persistent": 0}, "rows in blocks instead of in registers"),
    ("rows-held", {"persistent": 65536}, "rows in registers, long ones too"),
    ("unfused", {"fuse": False}, "one kernel for each operation"),
]
"""Deliberate variants: name, options, and how they differ. The order is the order of answers."""


def teach(path: str, most: int = 1, skip: tuple[str, ...] = (), arch: str = "") -> tuple[list[Taught], list[str]]:
    """Up to `most` candidates that differ, best guess first, and notes on what could not be written. Tiles are chosen
    for the architecture `arch`, such as `sm_80`; for `sm_90` where it says nothing.

    Raises `ProblemError` for a file that is no usable problem.
    """
    found: list[Taught] = []
    notes: list[str] = []
    try:
        problem = capture(path)
    except Unsupported as error:
        return [], [str(error)]
    seen: set[str] = set()
    for name, options, about in VARIANTS:
        if len(found) >= most:
            break
        try:
            source = write(problem, options | {"arch": arch})
        except Unsupported as error:
            notes.append(f"{name}: {error}")
            if name == "default":
                break
            continue
        except Exception as error:  # a fault of the teacher itself; another variant may not have it
            notes.append(f"{name}: the teacher failed: {type(error).__name__}: {error}")
            continue
        if source in seen:
            continue
        seen.add(source)
        if name not in skip:
            found.append(Taught(name, source, about))
    return found, notes


def main() -> None:
    """A candidate on stdout."""
    import argparse
    import sys

    parser = argparse.ArgumentParser(prog="python -m tilewright.teacher.teach", description=main.__doc__)
    parser.add_argument("problem")
    parser.add_argument("--variant", default="default", choices=[name for name, _, _ in VARIANTS])
    given = parser.parse_args()
    options = next(options for name, options, _ in VARIANTS if name == given.variant)
    try:
        sys.stdout.write(write(capture(given.problem), options))
    except (Unsupported, ProblemError) as error:
        sys.exit(f"failed to write a candidate for {given.problem}: {error}")


if __name__ == "__main__":
    main()
