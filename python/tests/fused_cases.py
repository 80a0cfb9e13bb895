"""Holds `fused` against `scan`: run by `test_fused.py`, with its kernels interpreted, since the interpreter is a switch
for the whole process; and on a GPU.

    TRITON_INTERPRET=1 python fused_cases.py PROFILES
    python fused_cases.py PROFILES cuda:0

PROFILES is a JSON list. Prints what differs, a line each.
"""

import json
import math
import sys
from collections.abc import Collection
from typing import Any

import torch
from tilewright.cell import figures, fused, scan

CASES = (
    # Shape, dtype, rules, kinds: the interpreter is slow.
    ([3, 300], torch.float32, None, None),
    ([256], torch.float16, {"scaled_rms", "mere_mare"}, None),
    ([2, 3, 16, 16], torch.bfloat16, {"scaled_rms", "three_way"}, None),
    ([1, 65_537], torch.float32, {"scaled_rms"}, {"wrong at the end"}),
)
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
KINDS = ("close", "far", "equal", "not finite", "wrong at the end", "reference is not finite")


def kernel(name: str) -> fused.Launch:
    """By its name, as Triton launches it."""
    if name == "differ":
        return lambda grid, arguments: figures.differ[tuple(grid)](*arguments, BLOCK=fused.WORDS)
    _, dtype, wide, rule = name.split()
    kind = torch.empty(0, dtype=getattr(torch, dtype), device=DEVICE)
    golden = torch.empty(0, dtype=torch.float64, device=DEVICE) if wide == "wide" else kind

    def launch(grid: Any, arguments: Any) -> None:
        table, limits, _, _, *rest = arguments
        figures.figures[tuple(grid)](table, limits, kind, golden, *rest, RULE=int(rule), BLOCK=fused.BLOCK)

    return launch


def kernels(dtype: torch.dtype, profiles: list[dict[str, Any]]) -> dict[str, fused.Launch]:
    """All that there are for a dtype."""
    names = {
        fused.kernel_name(scan.dtype_name(dtype), wide, each["rule"]) for each in profiles for wide in (False, True)
    }
    return {name: kernel(name) for name in ("differ", *names)}


def results(kind: str, exact: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """What the reference and a candidate may give."""
    native = exact.to(dtype)
    if kind == "reference is not finite":
        native[-1] = math.inf
    noise = {"equal": 0.0, "far": 1e-2}.get(kind, 3e-6)
    got = (exact * (1.0 + noise * torch.randn_like(exact))).to(dtype) if noise else native.clone()
    if kind == "not finite":
        got[len(got) // 2] = math.nan
    if kind == "wrong at the end":
        got[-1] += 3.0
    return native, got


def near(name: str, a: Any, b: Any) -> bool:
    """The same but for the order of sums: groups that are equally bad without it may stand for each other."""
    if isinstance(a, str) and isinstance(b, str):
        return math.isclose(float(a), float(b), rel_tol=1e-9) or (a, b) == ("nan", "nan")
    if isinstance(a, list) and isinstance(b, list) and a and isinstance(a[0], str):
        return near(name, a[0], b[0]) and (a[1] == b[1] or name == "group")
    return a == b


def differences(
    shape: list[int], dtype: torch.dtype, profiles: list[dict[str, Any]], kinds: Collection[str]
) -> list[str]:
    """What differs in the figures of some results, compared in one go."""
    comparison = fused.Comparison(kernels(dtype, profiles), DEVICE)
    asked = []
    for kind in kinds:
        exact = torch.randn(math.prod(shape), dtype=torch.float64, device=DEVICE) * torch.rand(1).item()
        native, got = results(kind, exact, dtype)
        for float64 in (None, exact):
            for profile in profiles:
                grouped = profile["rule"] == "scaled_rms"
                reference = scan.Reference(native, float64, shape, profile["golden"], grouped)
                later = comparison.figures(reference, got, profile)
                asked.append((f"{shape} {dtype} {kind} {profile['name']}", later, scan.scan(reference, got, profile)))
        equal = comparison.equal(native.view(torch.uint8), got.view(torch.uint8))
        asked.append((f"{shape} {dtype} {kind}: equal", equal, native.view(torch.uint8).equal(got.view(torch.uint8))))
    # Of odd lengths, and in the last byte.
    for length in (1, 7, 8, 8 * fused.WORDS + 3):
        first = torch.randint(256, (length,), dtype=torch.uint8, device=DEVICE)
        second = first.clone()
        second[-1] ^= 1
        asked.append((f"{length} bytes", comparison.read(first[:20]), first[:20].tolist()))
        asked.append((f"{length} bytes: equal", comparison.equal(first, first.clone()), True))
        asked.append((f"{length} bytes: other", comparison.equal(first, second), False))
    comparison.run()
    handled = sum(found is not None for found in comparison.found.values())
    wrong = [] if handled else [f"{shape} {dtype}: nothing was left to the kernels"]
    for what, later, wanted in asked:
        found = later()
        if not isinstance(wanted, dict):
            wrong += [] if found == wanted else [f"{what}: {found}, not {wanted}"]
            continue
        # `scan` counts them for one rule alone.
        skipped = {"matched"} if wanted["matched"] == 0 else set()
        pairs = {name: (found[name], wanted[name]) for name in wanted if name not in skipped}
        wrong += [f"{what}: {name} {a}, not {b}" for name, (a, b) in pairs.items() if not near(name, a, b)]
    return wrong


def main() -> None:
    """Print what differs."""
    profiles = json.loads(sys.argv[1])
    torch.manual_seed(7)
    for shape, dtype, rules, kinds in CASES:
        chosen = [profile for profile in profiles if rules is None or profile["rule"] in rules]
        for line in differences(shape, dtype, chosen, kinds or KINDS):
            print(line)


if __name__ == "__main__":
    main()
