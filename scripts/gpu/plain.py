"""What evaluators of the field do for one candidate, in one fresh process: import it, check 5 trials, time 100 calls.

    python3 scripts/gpu/plain.py PROBLEM CANDIDATE [--device cuda]

Prints one line of JSON. Not part of Tilewright: it is what throughput.py compares with.
"""

import argparse
import importlib.util
import json
from pathlib import Path

import torch


def load(path: Path):
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def moved(values: list, device: str) -> list:
    """Arguments on the device."""
    return [value.to(device) if isinstance(value, torch.Tensor) else value for value in values]


def main() -> None:
    """Check and time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", type=Path)
    parser.add_argument("candidate", type=Path)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    problem, candidate = load(options.problem), load(options.candidate)
    correct = True
    with torch.no_grad():
        for trial in range(5):
            torch.manual_seed(trial)
            inputs = moved(problem.get_inputs(), options.device)
            model = problem.Model(*problem.get_init_inputs()).to(options.device)
            new = candidate.ModelNew(*problem.get_init_inputs()).to(options.device)
            new.load_state_dict(model.state_dict())
            correct &= torch.allclose(model(*inputs), new(*inputs), atol=1e-2, rtol=1e-2)
        times = []
        for _ in range(100):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            new(*inputs)
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end))
    print(json.dumps({"correct": correct, "ms": sum(times) / len(times)}))


if __name__ == "__main__":
    main()
