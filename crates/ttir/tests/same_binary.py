"""Does Triton make the same binary of a fixture and of what our printer makes of it?

`python same_binary.py PRINTER [NAME…]`, where PRINTER is the built example `ttir`. For every fixture, Triton reads both
texts and prints the same module; where the fixture is past the front end's passes, both compile to the same cubin.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["TRITON_ALWAYS_COMPILE"] = "1"

import harvest
import kernels
import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.runtime import driver


def reprint(path, target):
    """The module as Triton prints it after reading the file."""
    context = ir.context()
    ir.load_dialects(context)
    make_backend(target).load_dialects(context)
    return ir.parse_mlir_module(str(path), context).str_nodebug()


def check(case, original, printed):
    """None, or what differs."""
    target = GPUTarget("cuda", case["arch"], 32)
    if reprint(original, target) != reprint(printed, target):
        return "another module"
    if case["raw"]:
        return None
    options = {**case["options"], "num_warps": 4}
    compiled = [triton.compile(str(path), target=target, options=options) for path in (original, printed)]
    return None if compiled[0].asm["cubin"] == compiled[1].asm["cubin"] else "another cubin"


def main(printer, names):
    driver.set_active(harvest.NoDriver())
    failed = 0
    for case in kernels.CASES:
        if names and case["name"] not in names:
            continue
        original = Path(__file__).parent / "fixtures" / f"{case['name']}.ttir"
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TRITON_CACHE_DIR"] = folder
            printed = Path(folder) / original.name
            printed.write_text(subprocess.run([printer, original], check=True, capture_output=True, text=True).stdout)
            child = os.fork()
            if child == 0:
                difference = check(case, original, printed)
                if difference:
                    print(f"{case['name']}: {difference}")
                os._exit(1 if difference else 0)
            _, status = os.waitpid(child, 0)
        failed += status != 0
        if os.WIFSIGNALED(status):
            print(f"{case['name']}: Triton crashed")
    print(f"{failed} of {len(names or kernels.CASES)} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
