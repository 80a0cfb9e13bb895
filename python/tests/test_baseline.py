"""The process that times the reference: its conversation here, its times where there is a GPU."""

import json
import multiprocessing
import socket
from pathlib import Path

import pytest
import torch
from tilewright.cell import baseline, channel, oracle

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, 4)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(6, 8)]

def get_init_inputs():
    return [8]
"""


def oracle_data(request: dict, answers: multiprocessing.Queue) -> None:
    """An oracle sets torch's switches for good, so it has a process of its own."""
    answers.put(oracle.run(request, ""))


def serve(request: dict, answers: multiprocessing.Queue) -> None:
    """The same for the reference."""
    answers.put(baseline.run(request, ""))


@pytest.fixture
def conversation(tmp_path: Path):
    """A connection to the process that times the problem above, with oracle data."""
    problem = tmp_path / "problem.py"
    problem.write_text(PROBLEM)
    data = tmp_path / "data"
    wanted = {"seed": 1, "trials": 2, "regimes": False, "device": "cpu", "max_bytes": 1 << 30, "threads": 1}
    # Not forked: CUDA does not stand that.
    processes = multiprocessing.get_context("spawn")
    answers = processes.Queue()
    first = processes.Process(
        target=oracle_data, args=({"problem": str(problem), "data": str(data), **wanted}, answers), daemon=True
    )
    first.start()
    case = answers.get(timeout=120)["cases"][0]
    first.join(timeout=60)
    request = {
        "problem": str(problem),
        "signature": case["signature"],
        "device": "cuda:0",
        "data": str(data),
        "state": case["trials"][0]["state"],
        "calls": [{"inputs": trial["calls"][0]["inputs"]} for trial in case["trials"]],
        "socket": str(tmp_path / "socket"),
    }
    served = processes.Process(target=serve, args=(request, answers), daemon=True)
    served.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        while served.is_alive():
            try:
                stream.connect(request["socket"])
                break
            except (FileNotFoundError, ConnectionRefusedError):
                served.join(timeout=0.01)
        yield stream
        stream.shutdown(socket.SHUT_RDWR)
    assert answers.get(timeout=60) == {}
    served.join(timeout=60)
    assert not Path(request["socket"]).exists()


def ask(stream: socket.socket, question: dict) -> dict:
    """The answer to one question."""
    channel.send_frame(stream.fileno(), question)
    return channel.receive_frame(stream.fileno())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_every_question_is_answered_with_an_error(conversation: socket.socket) -> None:
    for question in ({"work": None}, {"prepare": "eager"}, {"nonsense": 1}):
        answer = ask(conversation, question)
        assert set(answer) == {"error"}, json.dumps(answer)
        assert "NVIDIA" in answer["error"] or "CUDA" in answer["error"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_times_of_the_reference(conversation: socket.socket) -> None:
    assert ask(conversation, {"work": None}) == {"flops": 2 * 6 * 8 * 4, "bytes": 4 * (6 * 8 + 8 * 4 + 4 + 6 * 4)}
    ready = ask(conversation, {"prepare": "eager"})
    assert ready["graph"] and 0.0 < ready["nothing_us"] < 50.0
    times = ask(conversation, {"time": "eager", "calls": 5})["us"]
    assert len(times) == 5 and all(ready["nothing_us"] < us < 1e4 for us in times)
    assert "error" in ask(conversation, {"time": "compile", "calls": 5})
