"""Distinct candidates by the hundred: the suite's own problems at sizes of practice, their candidates varied.

    python3 scripts/gpu/candidates.py DIR [--count 200] [--small]

Each candidate has kernels of other names than all the others, other constants where a kernel has some, and a shape of
blocks among several: nothing in a cache knows it. All are honest, and each has one configuration.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

PROBLEMS = Path(__file__).resolve().parents[2] / "problems"
WARPS = ("num_warps=4", "num_warps=8", "num_warps=2")


@dataclass(frozen=True)
class Kind:
    """A problem of the suite, with other sizes, and what in its candidate may be written otherwise."""

    name: str
    sizes: dict[str, int]
    small: dict[str, int]
    """Sizes that a machine without a GPU verifies in a second."""
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What may stand in the place of a text."""


@dataclass(frozen=True)
class Candidate:
    """One file to be verified, and the problem that it is for."""

    problem: Path
    path: Path


KINDS = [
    Kind(
        "softmax",
        {"ROWS": 2048, "COLS": 4096},
        {"ROWS": 64, "COLS": 1000},
        {"num_warps=num_warps": ("num_warps=num_warps", *WARPS)},
    ),
    Kind(
        "layernorm",
        {"TOKENS": 4096, "WIDTH": 2048},
        {"TOKENS": 64, "WIDTH": 768},
        {"num_warps=num_warps": ("num_warps=num_warps", *WARPS)},
    ),
    Kind(
        "rmsnorm_fp16",
        {"TOKENS": 8192, "WIDTH": 2048},
        {"TOKENS": 64, "WIDTH": 1024},
        {"4096 //": ("4096 //", "2048 //")},
    ),
    Kind(
        "log_softmax",
        {"ROWS": 512, "COLS": 32000},
        {"ROWS": 8, "COLS": 10000},
        {"BLOCK=2048, num_warps=8": tuple(f"BLOCK={b}, num_warps={w}" for b, w in ((2048, 8), (1024, 4), (4096, 8)))},
    ),
    Kind(
        "masked_softmax",
        {"ROWS": 4096, "COLS": 2048},
        {"ROWS": 50, "COLS": 900},
        {"block // 256": ("block // 256", "block // 512")},
    ),
    Kind(
        "linear_gelu",
        {"TOKENS": 1024, "FEATURES_IN": 1024, "FEATURES_OUT": 1024},
        {"TOKENS": 40, "FEATURES_IN": 192, "FEATURES_OUT": 64},
        {"= 32, 64": ("= 32, 64", "= 64, 64", "= 64, 32"), "BLOCK_I=32": ("BLOCK_I=32", "BLOCK_I=16")},
    ),
    Kind(
        "batched_matmul_bf16",
        {"BATCH": 16, "M": 512, "N": 512, "K": 512},
        {"BATCH": 2, "M": 96, "N": 80, "K": 128},
        {"= 64, 64, 32": ("= 64, 64, 32", "= 64, 128, 32", "= 128, 64, 64", "= 32, 64, 64")},
    ),
    Kind(
        "causal_attention_fp16",
        {"BATCH": 4, "HEADS": 8, "TIME": 1024, "HEAD": 64},
        {"BATCH": 1, "HEADS": 2, "TIME": 100, "HEAD": 64},
        {"block_q = 64": ("block_q = 64", "block_q = 128", "block_q = 32"), "BLOCK_K=32": ("BLOCK_K=32", "BLOCK_K=64")},
    ),
    Kind(
        "cross_entropy",
        {"ROWS": 2048, "CLASSES": 8192},
        {"ROWS": 24, "CLASSES": 2000},
        {"self.ignored, BLOCK=1024": tuple(f"self.ignored, BLOCK={block}" for block in (1024, 2048, 512))},
    ),
    Kind(
        "rotary_fp16",
        {"BATCH": 4, "TIME": 1024, "HEADS": 16, "HALF": 64},
        {"BATCH": 1, "TIME": 48, "HEADS": 8, "HALF": 32},
        {"block_half = 8,": ("block_half = 8,", "block_half = 4,", "block_half = 16,")},
    ),
    Kind(
        "conv2d_relu",
        {"BATCH": 8, "CHANNELS_IN": 32, "CHANNELS_OUT": 64, "HEIGHT": 56, "WIDTH": 58},
        {"BATCH": 1, "CHANNELS_IN": 12, "CHANNELS_OUT": 32, "HEIGHT": 14, "WIDTH": 18},
        {"= 64, 32": ("= 64, 32", "= 64, 64", "= 128, 32"), "BLOCK_K=32": ("BLOCK_K=32", "BLOCK_K=16")},
    ),
    Kind(
        "depthwise_conv2d",
        {"BATCH": 16, "CHANNELS": 96, "HEIGHT": 56, "WIDTH": 56},
        {"BATCH": 1, "CHANNELS": 16, "HEIGHT": 28, "WIDTH": 36},
        {"block = 512": ("block = 512", "block = 256", "block = 1024")},
    ),
    Kind(
        "bias_swish_clamp",
        {"ROWS": 4096, "COLS": 2048},
        {"ROWS": 64, "COLS": 1000},
        {"= 16, 128": ("= 16, 128", "= 8, 128", "= 8, 256", "= 4, 512")},
    ),
    Kind(
        "gated_residual",
        {"TOKENS": 4096, "WIDTH": 2048},
        {"TOKENS": 64, "WIDTH": 768},
        {"block = 1024": ("block = 1024", "block = 512", "block = 2048")},
    ),
    Kind(
        "geglu_libdevice",
        {"TOKENS": 4096, "WIDTH": 2048},
        {"TOKENS": 64, "WIDTH": 600},
        {"block = 512": ("block = 512", "block = 256", "block = 1024")},
    ),
    Kind(
        "row_variance",
        {"ROWS": 2048, "COLS": 4096},
        {"ROWS": 32, "COLS": 3000},
        {"BLOCK=1024": ("BLOCK=1024", "BLOCK=2048", "BLOCK=512")},
    ),
    Kind(
        "column_mean",
        {"ROWS": 16384, "COLS": 512},
        {"ROWS": 3000, "COLS": 96},
        {"= 128, 64": ("= 128, 64", "= 64, 64", "= 128, 32")},
    ),
    Kind(
        "cumsum",
        {"ROWS": 2048, "COLS": 4096},
        {"ROWS": 16, "COLS": 3000},
        {"BLOCK=1024": ("BLOCK=1024", "BLOCK=2048", "BLOCK=512")},
    ),
]
"""What candidates are made of. The sizes are those that models of some hundred million parameters work on."""


def problem_text(kind: Kind, small: bool) -> str:
    """The suite's problem with other sizes, and two of its further shapes."""
    text = (PROBLEMS / kind.name / "problem.py").read_text()
    sizes = kind.small if small else kind.sizes
    lines = [f"{name} = {value}" for name, value in sizes.items()]
    return "\n".join([text, *lines, "CASES = CASES[1:3]", ""])


def candidate_text(kind: Kind, number: int, rng: random.Random) -> str:
    """The suite's candidate, with names and constants that no other number has."""
    text = (PROBLEMS / kind.name / "candidate.py").read_text()
    for old, choices in kind.choices.items():
        if old not in text:
            raise ValueError(f"{kind.name}: its candidate has no {old!r}")
        text = text.replace(old, rng.choice(choices))
    kernels = re.findall(r"@triton\.jit\ndef (\w+)\(", text)
    for kernel in kernels:
        text = re.sub(rf"\b{kernel}\b", f"{kernel}_{number}", text)
    return f"{text}\n\nVARIANT = {number}\n"


def write(
    folder: Path, count: int, small: bool, seed: int = 0, first: int = 0, kinds: list[str] | None = None
) -> list[Candidate]:
    """Write problems and `count` candidates, in turns over the problems."""
    rng, made = random.Random(f"{seed} {first}"), []
    chosen = [kind for kind in KINDS if kinds is None or kind.name in kinds]
    for kind in chosen:
        home = folder / kind.name
        home.mkdir(parents=True, exist_ok=True)
        (home / "problem.py").write_text(problem_text(kind, small))
    for number in range(first, first + count):
        kind = chosen[number % len(chosen)]
        path = folder / kind.name / f"candidate_{number}.py"
        path.write_text(candidate_text(kind, number, rng))
        made.append(Candidate(folder / kind.name / "problem.py", path))
    return made


def main() -> None:
    """Write them and list them as requests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    for made in write(options.folder, options.count, options.small):
        print(json.dumps({"problem": str(made.problem), "candidate": str(made.path)}))


if __name__ == "__main__":
    main()
