"""Figures of `tilewright.cell.scan` for the cases in a file: run by the test of `crates/judge/src/figures.rs`.

    python scan_cases.py CASES.json DATA

CASES is `{profiles: [Profile], cases: [{dtype, shape, chunk, native: [offset, nbytes], float64, got}]}` with places in
DATA. Prints for each case, for each profile, the figures with the bytes of the worst element.
"""

import json
import sys
from pathlib import Path

import torch
from tilewright.cell import scan
from tilewright.cell.oracle_values import NAMES


def main() -> None:
    """Print the figures."""
    request = json.loads(Path(sys.argv[1]).read_text())
    data = torch.frombuffer(bytearray(Path(sys.argv[2]).read_bytes()), dtype=torch.uint8)

    def part(place: list[int], dtype: torch.dtype) -> torch.Tensor:
        return data[place[0] : place[0] + place[1]].clone().view(dtype)

    answers = []
    for case in request["cases"]:
        scan.CHUNK = case["chunk"]
        dtype = NAMES[case["dtype"]]
        native, got = part(case["native"], dtype), part(case["got"], dtype)
        float64 = None if case["float64"] is None else part(case["float64"], torch.float64)
        figures = []
        for profile in request["profiles"]:
            grouped = profile["rule"] == "scaled_rms"
            reference = scan.Reference(native, float64, case["shape"], profile["golden"], grouped)
            figures.append(scan.scan(reference, got, profile))
        answers.append(figures)
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
