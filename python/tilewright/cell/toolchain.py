"""What Triton looks for with programs that the sandbox does not have: a C compiler, and the driver of the GPU."""

from __future__ import annotations

import os
import shutil


def show_toolchain(recorder: str | None = None) -> None:
    """Tell Triton where they are. `recorder` is a library that has the driver's name and stands in front of it."""
    if compiler := shutil.which("gcc"):
        os.environ["CC"] = os.path.realpath(compiler)
    # Linked with the driver itself, whose functions are all there, even where the recorder is what is loaded: a linker
    # drops a library that has none of the functions asked for.
    if driver := next((path for path in loaded_drivers() if path != recorder), recorder):
        os.environ["TRITON_LIBCUDA_PATH"] = os.path.dirname(driver)


def loaded_drivers() -> list[str]:
    """Paths of what this process has loaded under the driver's name, in the order of their addresses."""
    with open("/proc/self/maps") as maps:
        return [line.split()[-1] for line in maps if "/libcuda.so" in line]
