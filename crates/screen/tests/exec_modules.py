"""Executes kernel-only modules and checks that each kernel in them is what the screen said it is.

Usage: exec_modules.py FOLDER, which holds NAME.py, NAME.json (its kernels) and, where the candidate may be
executed too, NAME.candidate: then kernels and the globals they read must be the same in both.
Prints one line per fault; exits 1 if there is any.
"""

import ast
import importlib.machinery
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

from triton.language import constexpr
from triton.runtime.jit import JITFunction


def load(path: Path) -> ModuleType:
    """Imports a file whatever its suffix."""
    loader = importlib.machinery.SourceFileLoader(f"loaded_{path.stem}_{path.suffix[1:]}", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def shape(function: JITFunction) -> str:
    """The function's syntax tree without annotations."""
    tree = function.parse()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef):
            node.returns = None
    return ast.dump(tree)


def same(left: object, right: object) -> bool:
    """Whether a global means the same in both modules."""
    if isinstance(left, constexpr) and isinstance(right, constexpr):
        left, right = left.value, right.value
    if isinstance(left, ModuleType):
        return left is right
    if isinstance(left, JITFunction):
        return isinstance(right, JITFunction) and shape(left) == shape(right)
    if type(left).__name__ == "ConstexprFunction":
        return type(left) is type(right)
    return type(left) is type(right) and left == right


def differences(name: str, cut: JITFunction, candidate: ModuleType) -> list[str]:
    """How a kernel differs from the one in the candidate."""
    original = getattr(candidate, name, None)
    while original is not None and not isinstance(original, JITFunction):
        original = getattr(original, "fn", None)
    if original is None:
        return []  # nested: not reachable by name
    found = [] if shape(cut) == shape(original) else [f"{name} is another function than the candidate's"]
    for used in cut.fn.__code__.co_names:
        if used in original.__globals__ and not same(cut.__globals__.get(used), original.__globals__[used]):
            found.append(f"{name} sees another {used}: {cut.__globals__.get(used)!r}")
    return found


def faults(path: Path) -> list[str]:
    """What is wrong with one module."""
    try:
        module = load(path)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    original = path.with_suffix(".candidate")
    candidate = load(original) if original.exists() else None
    found = []
    for kernel in json.loads(path.with_suffix(".json").read_text()):
        name = kernel["name"]
        function = getattr(module, name, None)
        if not isinstance(function, JITFunction):
            found.append(f"{name} is {type(function).__name__}")
            continue
        def_line = function.starting_line_number + next(
            i for i, line in enumerate(function.raw_src) if line.strip().startswith("def ")
        )
        if def_line != kernel["line"]:
            found.append(f"{name} is on line {def_line}, not {kernel['line']}")
        if function.arg_names != kernel["params"]:
            found.append(f"{name} has parameters {function.arg_names}")
        try:
            function.cache_key  # noqa: B018  resolves every global that the kernel reads
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}: {error}")
        if candidate is not None:
            found += differences(name, function, candidate)
    return found


def main() -> int:
    paths = sorted(Path(sys.argv[1]).glob("*.py"))
    found = [f"{path.stem}: {fault}" for path in paths for fault in faults(path)]
    print("\n".join(found))
    print(f"{len(paths)} modules executed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
