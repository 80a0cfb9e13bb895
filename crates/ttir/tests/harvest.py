"""Write one TTIR fixture per case of kernels.py and its sisters. Needs triton, no GPU: `python harvest.py [FOLDER]`.

`python harvest.py --unused` prints the names of Triton's language that no kernel uses.
"""

import re
import sys
from pathlib import Path

import kernels
import kernels_control
import kernels_dots
import kernels_functions
import kernels_memory
import kernels_models
import kernels_shapes
import kernels_types
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.language.extra.cuda import libdevice
from triton.runtime import driver

MODULES = (
    kernels,
    kernels_control,
    kernels_dots,
    kernels_functions,
    kernels_memory,
    kernels_models,
    kernels_shapes,
    kernels_types,
)


class NoDriver:
    """Stands in for the CUDA driver: Triton only asks it which target is current."""

    target = GPUTarget("cuda", 90, 32)

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0


def lower(case):
    """The case's module as text, with its file paths cut to their last part."""
    target = GPUTarget("cuda", case["arch"], 32)
    NoDriver.target = target
    fn, types, constexprs = case["fn"], list(case["signature"]), dict(case["constexprs"])
    signature, attrs, values = {}, {}, {}
    for index, param in enumerate(fn.params):
        if param.is_constexpr:
            signature[param.name] = "constexpr"
            values[(index,)] = constexprs.pop(param.name, param.default)
        else:
            kind = types.pop(0)
            signature[param.name] = kind.rstrip("!")
            if kind.endswith("!"):
                attrs[(index,)] = [["tt.divisibility", 16]]
    assert not types and not constexprs, case["name"]
    backend = make_backend(target)
    options = backend.parse_options(dict(case["options"]))
    context = triton._C.libtriton.ir.context()
    triton._C.libtriton.ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(fn, signature, values, attrs)
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    if not case["raw"]:
        stages = {}
        backend.add_stages(stages, options, source.language)
        module = stages["ttir"](module, {})
    text = str(module)
    for path in (kernels.__file__, triton.language.standard.__file__):
        text = text.replace(str(Path(path).parent) + "/", "")
    return text


# Names of triton.language that are no part of a kernel, or belong to other targets.
NO_PART = {
    *("TRITON_MAX_TENSOR_NUMEL", "block_type", "condition", "const", "constexpr_type", "dtype", "float8e4b8", "math"),
    *("float8e5b16", "philox_impl", "pi32_t", "slice", "target_info", "tensor", "tensor_descriptor", "tuple", "void"),
}


def unused():
    """Public names of triton.language and libdevice that no kernel of the list uses."""
    text = "\n".join(Path(module.__file__).read_text() for module in MODULES)
    named = set(re.findall(r"\btl\.(?:math\.)?(\w+)", text))
    language = [f"tl.{name}" for name in triton.language.__all__ if name not in named and name not in NO_PART]
    called = set(re.findall(r"\blibdevice\.(\w+)", text))
    source = Path(libdevice.__file__).read_text()
    functions = [f"libdevice.{name}" for name in re.findall(r"^def (\w+)", source, re.M) if name not in called]
    return language + functions


def main(folder):
    driver.set_active(NoDriver())
    for case in kernels.CASES:
        try:
            text = lower(case)
        except Exception as error:
            print(f"{case['name']}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        (folder / f"{case['name']}.ttir").write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--unused"]:
        print("".join(f"{name}\n" for name in unused()), end="")
        sys.exit()
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "fixtures")
