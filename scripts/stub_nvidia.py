#!/usr/bin/env python3
"""Build stub NVIDIA libraries, so that PyPI's CUDA build of torch imports on a machine without a GPU.

There is no CPU-only torch for x86-64 on PyPI, and the CUDA one links to some 3 GB of NVIDIA libraries. Binding is
lazy: empty libraries with the right names, version nodes and symbols are enough. Every function of theirs returns
cudaErrorNoDevice (100), so `torch.cuda.is_available()` is False and work on the CPU is right.

    stub_nvidia.py SITE_PACKAGES

Needs cc, nm and readelf. Writes SITE_PACKAGES/nvidia/cu13/lib, where torch's RPATH looks, in a second or two.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

NVIDIA = re.compile(r"lib(cu|nccl|nvshmem|nvrtc|nvJit)")
"""Names of the libraries to stub; libcuda itself is the driver's and is loaded only on demand."""

PREFIXES = {
    "libcufile.so.0": "cuFile",
    "libcurand.so.10": "curand",
    "libcusparseLt.so.0": "cusparseLt",
    "libnccl.so.2": "nccl",
    "libnvrtc.so.13": "nvrtc",
    "libnvshmem_host.so.3": "nvshmem",
}
"""Libraries whose symbols have no version: torch's unversioned symbols with this prefix are theirs."""

BODIES = {
    # One made-up device on demand: some paths of torch ask for one before they build fake CUDA tensors.
    "cudaGetDeviceCount": "extern char *getenv(const char *); int %s(int *n) "
    '{ int k = getenv("STUB_CUDA_DEVICE") != 0; if (n) *n = k; return k ? 0 : 100; }',
    "cudaGetErrorString": 'const char *%s(int e) { return "no CUDA (stub library)"; }',
    "cudaGetErrorName": 'const char *%s(int e) { return "cudaErrorNoDevice"; }',
    "cudaGetDevice": "int %s(int *d) { if (d) *d = 0; return 0; }",
    "cudaSetDevice": "int %s(int d) { return 0; }",
    "cudaDeviceSynchronize": "int %s(void) { return 0; }",
    "cudaRuntimeGetVersion": "int %s(int *v) { if (v) *v = 13000; return 0; }",
    "cudaDriverGetVersion": "int %s(int *v) { if (v) *v = 0; return 0; }",
    "cudaGetLastError": "int %s(void) { return 0; }",
    "cudaPeekAtLastError": "int %s(void) { return 0; }",
}
DEFAULT_BODY = "long %s(void) { return 100; }"

MARKER = "tilewright-stubs.txt"
"""Beside the libraries' folder; says to people and to `tilewright doctor` what they are."""

Symbols = dict[str, dict[str, str]]
"""Library -> symbol -> version node ('' for none)."""


def main() -> None:
    """Build the stubs that the torch in a site-packages folder needs."""
    parser = argparse.ArgumentParser(description="Build stub NVIDIA libraries for a CUDA build of torch.")
    parser.add_argument("site_packages", type=Path)
    site_packages = parser.parse_args().site_packages
    torch_libraries = sorted((site_packages / "torch" / "lib").glob("*.so*"))
    if not torch_libraries:
        sys.exit(f"failed to find torch in {site_packages}")
    out = site_packages / "nvidia" / "cu13" / "lib"
    out.mkdir(parents=True, exist_ok=True)
    needed = needed_symbols(torch_libraries)
    for library, symbols in needed.items():
        build(library, symbols, out)
    text = "The libraries below this folder are empty stand-ins made by Tilewright's scripts/stub_nvidia.py.\n"
    (site_packages / "nvidia" / MARKER).write_text(text)
    print(f"{len(needed)} stub libraries in {out}")


def needed_symbols(libraries: list[Path]) -> Symbols:
    """Which symbols torch's libraries want from which NVIDIA library."""
    needed: Symbols = {}
    for library in libraries:
        for name in re.findall(r"\(NEEDED\).*\[(.*?)\]", tool("readelf", "-dW", library)):
            if NVIDIA.match(name) and not name.startswith("libcuda.so"):
                needed.setdefault(name, {})
    for library in libraries:
        providers = version_providers(library)
        for line in tool("nm", "-D", "--undefined-only", library).splitlines():
            symbol, _, version = line.split()[-1].partition("@")
            version = version.lstrip("@")
            if version:
                provider = providers.get(version)
            else:
                provider = next((name for name, prefix in PREFIXES.items() if symbol.startswith(prefix)), None)
            if provider in needed:
                needed[provider][symbol] = version
    return needed


def version_providers(library: Path) -> dict[str, str]:
    """Version node -> the library that a given library wants it from."""
    providers = {}
    provider = None
    for line in tool("readelf", "-VW", library).splitlines():
        if match := re.search(r"File: (\S+)", line):
            provider = match.group(1)
        if provider and (match := re.search(r"Name: (\S+)\s+Flags", line)):
            providers[match.group(1)] = provider
    return providers


def build(library: str, symbols: dict[str, str], out: Path) -> None:
    """Compile one stub. It replaces an old one in one step: other processes may be using that."""
    nodes = defaultdict(list)
    for symbol, version in sorted(symbols.items()):
        nodes[version].append(symbol)
    script = "".join(f"{node} {{ global: {'; '.join(names)}; }};\n" for node, names in nodes.items() if node)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        work = Path(folder)
        source = "\n".join(BODIES.get(symbol, DEFAULT_BODY) % symbol for symbol in sorted(symbols))
        (work / "stub.c").write_text(source + "\n")
        command = [os.environ.get("CC", "cc"), "-w", "-O1", "-fPIC", "-shared", "-s", f"-Wl,-soname,{library}"]
        if script:
            (work / "versions").write_text(script)
            command.append(f"-Wl,--version-script={work / 'versions'}")
        subprocess.run([*command, "-o", work / library, work / "stub.c"], check=True)
        os.replace(work / library, out / library)


def tool(name: str, *arguments: str | Path) -> str:
    """Run one of the binutils."""
    return subprocess.run([name, *arguments], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
