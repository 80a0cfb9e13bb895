"""Executes kernel-only modules and checks that each kernel in them is what the screen said it is.

Usage: exec_modules.py FOLDER, which holds pairs of NAME.py and NAME.json (a list of kernels).
Prints one line per fault; exits 1 if there is any.
"""

import importlib.util
import json
import sys
from pathlib import Path

from triton.runtime.jit import JITFunction


def faults(module_path: Path) -> list[str]:
    """What is wrong with one module."""
    spec = importlib.util.spec_from_file_location(f"cut_{module_path.stem}", module_path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001 - any failure is a fault to report
        return [f"{type(error).__name__}: {error}"]
    found = []
    for kernel in json.loads(module_path.with_suffix(".json").read_text()):
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
            function.cache_key  # noqa: B018 - resolves every global that the kernel reads
        except Exception as error:  # noqa: BLE001
            found.append(f"{name}: {type(error).__name__}: {error}")
    return found


def main() -> int:
    bad = 0
    for path in sorted(Path(sys.argv[1]).glob("*.py")):
        for fault in faults(path):
            print(f"{path.stem}: {fault}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
