"""Does Triton make the same binary of a fixture and of what our printer makes of it?

`python same_binary.py PRINTER [--every N] [NAME…]`, where PRINTER is the built example `ttir`. For every fixture (or
every Nth), Triton's front end still prints it, Triton reads both texts and prints the same module, and where Triton can
compile the fixture, both compile to the same cubin.
"""

import argparse
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
    """The module as Triton prints it after reading the file, without locations."""
    context = ir.context()
    ir.load_dialects(context)
    make_backend(target).load_dialects(context)
    return ir.parse_mlir_module(str(path), context).str_nodebug()


def check(case, original, printed):
    """None, or what differs."""
    target = GPUTarget("cuda", case["arch"], 32)
    now = printed.with_name("now.ttir")
    now.write_text(harvest.lower(case))
    module = reprint(original, target)
    if reprint(now, target) != module:
        return "the fixture is not what the front end prints: run harvest.py"
    if module != reprint(printed, target):
        return "another module"
    if not case["binary"]:
        return None
    options = {**case["options"], "num_warps": 4}
    compiled = [triton.compile(str(path), target=target, options=options) for path in (original, printed)]
    return None if compiled[0].asm["cubin"] == compiled[1].asm["cubin"] else "another cubin"


def main(printer, names, every):
    driver.set_active(harvest.NoDriver())
    cases = [case for case in kernels.CASES if not names or case["name"] in names][::every]
    failed = 0
    for case in cases:
        original = Path(__file__).parent / "fixtures" / f"{case['name']}.ttir"
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TRITON_CACHE_DIR"] = folder
            printed = Path(folder) / original.name
            printed.write_text(subprocess.run([printer, original], check=True, capture_output=True, text=True).stdout)
            sys.stdout.flush()
            # Triton ends its process where it finds a module malformed.
            child = os.fork()
            if child == 0:
                try:
                    difference = check(case, original, printed)
                except Exception as error:
                    difference = f"{type(error).__name__}: {str(error)[-200:]}"
                if difference:
                    print(f"{case['name']}: {difference}", flush=True)
                os._exit(1 if difference else 0)
            _, status = os.waitpid(child, 0)
        failed += status != 0
        if os.WIFSIGNALED(status):
            print(f"{case['name']}: Triton crashed")
    print(f"{failed} of {len(cases)} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("printer")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    sys.exit(main(arguments.printer, arguments.names, arguments.every))
