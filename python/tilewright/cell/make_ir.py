"""Triton IR text of one specialisation of a kernel, made without a GPU. Importing this changes nothing."""

from __future__ import annotations

import os
from typing import Any

import triton
from triton._C.libtriton import ir
from triton.compiler.compiler import ASTSource, make_backend


def make_ir(source: ASTSource, options: Any, target: Any) -> tuple[str, str]:
    """The text, with locations, and the name of the function in it.

    Builds the IR and runs the backend's first stage over it. `options` are the backend's own. Raises what Triton
    raises for a kernel that does not compile.
    """
    backend = make_backend(target)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    codegen = backend.get_codegen_implementation(options)
    module_map = backend.get_module_map()
    built = source.make_ir(target, options, codegen, module_map, context)
    built = stages["ttir"](built, {})
    # Triton's own library has locations too; where it is installed does not matter.
    text = str(built).replace(f'"{os.path.dirname(triton.__file__)}/', '"triton/')
    return text, built.get_entry_func_name()
