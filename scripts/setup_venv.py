#!/usr/bin/env python3
"""Make .venv: pinned torch, Triton and tools, and the `tilewright` package in it, editable.

    python3 scripts/setup_venv.py [--cuda auto|yes|no] [--debug]

Needs Python 3.11 or newer with venv, a C compiler and cargo. Quick when there is nothing to do. With `--cuda no`
(what auto means on a machine without an NVIDIA driver) torch's NVIDIA libraries are replaced by stubs, which saves
3 GB. Where this Python has the pinned torch and Triton already, those are used.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = [ROOT / "requirements" / "torch.txt", ROOT / "requirements" / "dev.txt"]
STAMP = VENV / "tilewright-stamp"
NATIVE_CRATES = [f"crates/{name}/{part}" for name in ("cell", "emulate", "ttir") for part in ("Cargo.toml", "src")]
NATIVE = ROOT / "python" / "tilewright" / "_core.abi3.so"
NATIVE_SOURCES = ["Cargo.lock", "pyproject.toml", "crates/python", *NATIVE_CRATES]


def main() -> None:
    """Bring .venv up to date."""
    parser = argparse.ArgumentParser(description="Make .venv for Tilewright.")
    parser.add_argument("--cuda", choices=["auto", "yes", "no"], default="auto", help="install NVIDIA's libraries")
    parser.add_argument("--debug", action="store_true", help="build the package's native part without optimisation")
    arguments = parser.parse_args()
    check_tools()
    cuda = arguments.cuda == "yes" or (arguments.cuda == "auto" and has_nvidia_driver())
    install_packages(cuda)
    install_tilewright(arguments.debug)
    check_imports()


def check_tools() -> None:
    """Say at once what is missing, and how to get it."""
    if sys.version_info < (3, 11):  # noqa: UP036 (whoever runs this may have any Python)
        sys.exit(f"failed to set up: Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    if not PYTHON.exists():
        try:
            import ensurepip  # noqa: F401
        except ImportError:
            sys.exit("failed to set up: this Python cannot make environments; try `apt-get install python3-venv`")
    wanted = {os.environ.get("CC", "cc"): "gcc", "readelf": "binutils", "nm": "binutils", "cargo": "cargo (rustup.rs)"}
    missing = {name: package for name, package in wanted.items() if shutil.which(name) is None}
    if missing:
        names = ", ".join(f"{name} (from {package})" for name, package in missing.items())
        sys.exit(f"failed to set up: not found: {names}")


def has_nvidia_driver() -> bool:
    """Whether this machine has an NVIDIA kernel driver loaded."""
    return Path("/proc/driver/nvidia/version").exists()


def pins(file: Path) -> dict[str, str]:
    """Name -> version of a requirements file."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", file.read_text(), re.MULTILINE))


def install_packages(cuda: bool) -> None:
    """Install what the requirement files pin, unless the stamp says that this was done."""
    inputs = [*REQUIREMENTS, ROOT / "scripts" / "stub_nvidia.py", Path(__file__)]
    stamp = hashlib.sha256(b"".join(file.read_bytes() for file in inputs) + bytes([cuda])).hexdigest()
    if STAMP.exists() and STAMP.read_text() == stamp and PYTHON.exists():
        say("packages: up to date")
        return
    torch_file, dev_file = REQUIREMENTS
    borrowed = has_pinned_torch(torch_file)
    if not has_pip():
        say(f"making {VENV.name} with Python {sys.version.split()[0]}")
        venv.create(VENV, clear=True, with_pip=True, symlinks=True, system_site_packages=borrowed)
    pip("--no-deps", "-r", dev_file)
    if borrowed:
        say("torch and Triton: using the ones that this Python has")
    elif cuda:
        say("installing torch and Triton with NVIDIA's libraries (about 3 GB; minutes)")
        pip("-r", torch_file)
    else:
        say("installing torch and Triton (about 600 MB; a minute or two)")
        pip("--no-deps", "-r", torch_file)
        site_packages = Path(ask("import sysconfig; print(sysconfig.get_path('purelib'))"))
        if not has_nvidia_packages(site_packages):
            say("building stub NVIDIA libraries: this machine has no GPU")
            run(PYTHON, ROOT / "scripts" / "stub_nvidia.py", site_packages)
            forget_nvidia(site_packages)
    STAMP.write_text(stamp)


def has_pip() -> bool:
    """Whether the environment is there and whole: an interrupted run may have left half of one."""
    if not PYTHON.exists():
        return False
    return subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0


def has_pinned_torch(file: Path) -> bool:
    """Whether the Python that runs this script has the pinned torch and Triton."""
    if sys.prefix != sys.base_prefix:
        return False
    for name in ("torch", "triton"):
        try:
            found = importlib.metadata.version(name).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            return False
        if found != pins(file)[name]:
            return False
    return True


def has_nvidia_packages(site_packages: Path) -> bool:
    """Whether real NVIDIA libraries are installed: stubs must not replace them."""
    return any(site_packages.glob("nvidia_cublas*.dist-info"))


def forget_nvidia(site_packages: Path) -> None:
    """Drop torch's requirement of NVIDIA's packages, or the next `pip install` would bring them all in."""
    for metadata in site_packages.glob("torch-*.dist-info/METADATA"):
        text = metadata.read_text()
        kept = re.sub(r"^Requires-Dist: (nvidia-|cuda-).*\n", "", text, flags=re.MULTILINE)
        if kept != text:
            metadata.write_text(kept)


def install_tilewright(debug: bool) -> None:
    """Build the native part and install the package, unless it is newer than its sources."""
    if NATIVE.exists() and installed() and NATIVE.stat().st_mtime >= newest(NATIVE_SOURCES):
        say("tilewright package: up to date")
        return
    say("building the tilewright package (a minute the first time)")
    environment = {**os.environ, "VIRTUAL_ENV": str(VENV)}
    environment.pop("CONDA_PREFIX", None)
    command = [VENV / "bin" / "maturin", "develop", "--quiet", *([] if debug else ["--release"])]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def installed() -> bool:
    """Whether the environment finds this checkout's package."""
    code = "import tilewright, pathlib; print(pathlib.Path(tilewright.__file__).resolve().parent)"
    found = subprocess.run([PYTHON, "-I", "-c", code], capture_output=True, text=True, check=False)
    return found.stdout.strip() == str(NATIVE.parent)


def newest(sources: list[str]) -> float:
    """Time of the last change to any source."""
    files = [file for source in sources for file in [ROOT / source, *(ROOT / source).rglob("*")]]
    return max(file.stat().st_mtime for file in files if file.is_file())


def check_imports() -> None:
    """Import everything once, which also proves the stubs."""
    code = "import torch, triton, tilewright._core; print('torch', torch.__version__, 'Triton', triton.__version__)"
    say(f"ready: {ask(code)}")


def pip(*arguments: str | Path) -> None:
    """Run the environment's pip install."""
    run(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments)


def ask(code: str) -> str:
    """Run Python code in the environment; what it prints."""
    return subprocess.run([PYTHON, "-I", "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def run(*command: str | Path) -> None:
    """Run a command that must succeed."""
    subprocess.run(command, check=True)


def say(text: str) -> None:
    """Tell the user what is going on."""
    print(f"venv: {text}", flush=True)


if __name__ == "__main__":
    start = time.monotonic()
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.stderr.write(error.stderr or "")
        sys.exit(f"failed to set up: {' '.join(map(str, error.cmd))} ended with status {error.returncode}")
    if time.monotonic() - start > 5:
        say(f"done in {time.monotonic() - start:.0f} s")
