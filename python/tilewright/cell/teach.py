"""Handler `teach`: candidates for a problem from the offline teacher. Trusted code, which reads the problem only.

Request: `{problem, target, device, max, skip, threads}`: the problem's path, what kernels are meant for (`backend`,
`arch`, `warp_size`), how many candidates are wanted, and the names of variants that are known already. Response:
`{candidates: [{variant, source, about}], notes: [str]}`, best guess first; the same request has the same answer. A
problem that the teacher cannot write has no candidates and says why in its notes. An unusable file is an error
document of kind `problem`.
"""

from __future__ import annotations

from typing import Any

import torch

from tilewright.cell.oracle_problem import ProblemError


def warm() -> None:
    """Import in the zygote what every job needs."""
    import torch._decomp
    import torch._subclasses.fake_tensor
    import torch.fx.experimental.proxy_tensor  # noqa: F401

    import tilewright.teacher.teach  # noqa: F401


def run(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """Handle one job; `scratch` is not used."""
    del scratch
    from tilewright.teacher.teach import teach

    torch.set_num_threads(max(int(request.get("threads") or 1), 1))
    try:
        arch = str((request.get("target") or {}).get("arch") or "")
        found, notes = teach(request["problem"], int(request["max"]), tuple(request.get("skip") or ()), arch)
    except ProblemError as error:
        failure = {
            "kind": error.kind,
            "type": "ProblemError",
            "message": str(error),
            "line": error.line,
            "traceback": "",
        }
        return {"error": failure}
    return {
        "candidates": [{"variant": t.variant, "source": t.source, "about": t.about} for t in found],
        "notes": notes,
    }
