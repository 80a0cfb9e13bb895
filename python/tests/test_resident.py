"""The process that holds a problem's data and times the reference: its conversation here, its times on a GPU."""

import itertools
import json
import multiprocessing
import socket
from pathlib import Path

import pytest
import torch
from tilewright.cell import channel, oracle, resident
from tilewright.cell.oracle_values import read_blob

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, 300)
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x):
        self.calls += 1
        return torch.relu(self.linear(x)), (x > 0).sum(1)

def get_inputs():
    return [torch.randn(6, 8)]

def get_init_inputs():
    return [8]
"""
DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
PROFILE = {
    "name": "strict",
    "rule": "scaled_rms",
    "golden": "float64",
    "non_finite": "pattern",
    "tolerance": {},
    "default": {
        **dict.fromkeys(("atol", "small_threshold", "small_error", "matched_ratio", "mean_rel", "mismatch"), 0.0),
        **{"rtol": 1e-5, "rms_tol": 3.5e-6, "atol_scaled": 3e-5, "reference_factor": 4.0},
    },
}


def oracle_data(request: dict, answers: multiprocessing.Queue) -> None:
    """An oracle sets torch's switches for good, so it has a process of its own."""
    answers.put(oracle.run(request, ""))


def serve(request: dict, answers: multiprocessing.Queue) -> None:
    """The same for the process that stays."""
    answers.put(resident.run(request, ""))


def request(folder: Path) -> dict:
    """What an oracle is asked, about the problem above."""
    problem = folder / "problem.py"
    problem.write_text(PROBLEM)
    wanted = {"seed": 1, "trials": 2, "regimes": False, "device": DEVICE, "max_bytes": 1 << 30, "threads": 1}
    return {
        "problem": str(problem),
        "data": str(folder / "data"),
        "socket": str(folder / "socket"),
        "seconds": 60,
        "profiles": [PROFILE],
        **wanted,
    }


@pytest.fixture
def conversation(tmp_path: Path):
    """A connection to the process, and the data that it said it made."""
    # Not forked: CUDA does not stand that.
    processes = multiprocessing.get_context("spawn")
    answers = processes.Queue()
    wanted = request(tmp_path)
    served = processes.Process(target=serve, args=(wanted, answers), daemon=True)
    served.start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        while served.is_alive():
            try:
                stream.connect(wanted["socket"])
                break
            except (FileNotFoundError, ConnectionRefusedError):
                served.join(timeout=0.01)
        yield stream, channel.receive_frame(stream.fileno())
        stream.shutdown(socket.SHUT_RDWR)
    assert answers.get(timeout=60) == {}
    served.join(timeout=60)
    assert not Path(wanted["socket"]).exists()


def ask(stream: socket.socket, question: dict) -> dict:
    """The answer to one question."""
    channel.send_frame(stream.fileno(), question)
    return channel.receive_frame(stream.fileno())


def test_what_stays_is_what_an_oracle_writes_into_a_file(conversation: tuple, tmp_path: Path) -> None:
    stream, data = conversation
    processes = multiprocessing.get_context("spawn")
    answers = processes.Queue()
    other = processes.Process(target=oracle_data, args=(request(tmp_path), answers), daemon=True)
    other.start()
    written = answers.get(timeout=120)
    other.join(timeout=60)
    for mine, its in zip(written["cases"][0]["trials"], data["cases"][0]["trials"], strict=True):
        for call, kept in zip(mine["calls"], its["calls"], strict=True):
            tensors = zip(call["expected"]["tensors"], kept["expected"]["tensors"], strict=True)
            pairs = [(a["native"], b["native"]) for a, b in tensors]
            for blob, held in [*zip(call["inputs"], kept["inputs"], strict=True), *pairs]:
                assert ask(stream, {"read": held}) == {"nbytes": blob["nbytes"]}
                got = bytearray()
                while len(got) < blob["nbytes"]:
                    got += stream.recv(blob["nbytes"] - len(got))
                assert got == read_blob(str(tmp_path / "data"), blob, torch.uint8).numpy().tobytes()


def test_inputs_and_weights_have_places_and_results_have_none(conversation: tuple) -> None:
    stream, data = conversation
    trial = data["cases"][0]["trials"][0]
    blobs = [*trial["state"], *trial["calls"][0]["inputs"], *trial["calls"][1]["inputs"]]
    found = ask(stream, {"places": blobs})
    ranges = sorted((place[1], place[1] + blob["nbytes"]) for place, blob in zip(found["places"], blobs, strict=True))
    assert len(found["handles"]) == 1
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ranges))
    assert "error" in ask(stream, {"places": [trial["calls"][0]["expected"]["tensors"][0]["native"]]})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_nothing_is_timed(conversation: tuple) -> None:
    for question in ({"work": None}, {"prepare": "eager"}, {"nonsense": 1}):
        answer = ask(conversation[0], question)
        assert set(answer) == {"error"}, json.dumps(answer)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_times_of_the_reference(conversation: tuple) -> None:
    stream, _ = conversation
    assert ask(stream, {"work": None})["flops"] == 2 * 6 * 8 * 300
    assert ask(stream, {"prepare": "eager"})["graph"]
    # As often as the inputs have places, and once more.
    for _ in range(9):
        times = ask(stream, {"time": "eager", "calls": 5})["us"]
        assert len(times) == 5 and all(0.0 < us < 1e4 for us in times)
    assert "error" in ask(stream, {"time": "compile", "calls": 5})


def keeper(folder: Path) -> tuple[resident.Keeper, dict]:
    """The process's state, here: on a CPU, with the expected results of a first call."""
    store = resident.Store("cpu")
    wide = torch.randn(4, 300, dtype=torch.float64)
    tensors = [
        {"path": "output[0]", "dtype": "float32", "shape": [4, 300], "native": wide.float(), "float64": wide},
        {"path": "output[1]", "dtype": "int64", "shape": [4], "native": torch.arange(4), "float64": None},
        {"path": "output[2]", "dtype": "float32", "shape": [], "native": torch.tensor(2.5), "float64": None},
    ]
    for tensor in tensors:
        for name in ("native", "float64"):
            tensor[name] = None if tensor[name] is None else store.write(tensor[name])
    inputs = store.share(torch.randn(10))
    return resident.Keeper({"problem": "p", "device": "cpu"}, {}, store), {"tensors": tensors, "inputs": inputs}


def left_behind(held: resident.Keeper, data: dict) -> tuple[torch.Tensor, dict]:
    """Memory with right results in it: the first transposed, the others in order; and the question about it."""
    memory, at, tensors = torch.full((1 << 14,), 0xFF, dtype=torch.uint8), 256, []
    for number, tensor in enumerate(data["tensors"]):
        native = held.store[tensor["native"]]
        if number == 0:
            native = native.view(torch.float32).view(4, 300).t().contiguous().view(torch.uint8).flatten()
        memory[at : at + native.numel()] = native
        strides = [1, 4] if number == 0 else [1] * len(tensor["shape"])
        exact = [tensor["dtype"] == "int64"]
        tensors.append({**tensor, "offset": at, "strides": strides, "exact": exact})
        at += -(-native.numel() // 256) * 256
    kept = held.store[data["inputs"]]
    memory[at : at + kept.numel()] = kept
    question = {"tensors": tensors, "unchanged": [[data["inputs"], at]], "profiles": 0}
    return memory, {**question, "remember": False, "again": False}


def looked(held: resident.Keeper, memory: torch.Tensor, *looks: dict, who: int = 0) -> list[dict]:
    """Answers to some looks at once."""
    return held.look_all(memory, {"who": who, "looks": list(looks), "profiles": [[PROFILE]]})


def test_right_results_have_small_figures_and_wrong_ones_large(tmp_path: Path) -> None:
    held, data = keeper(tmp_path)
    memory, question = left_behind(held, data)
    (answer,) = looked(held, memory, question)
    floats, integers, few = answer["tensors"]
    assert answer["unchanged"] == [True]
    assert floats["figures"][0]["mismatched"] == 0 and float(floats["figures"][0]["group"][0]) < 0.5
    assert integers["figures"][0] == {**integers["figures"][0], "mismatched": 0, "elements": 4, "worst": None}
    assert bytes(few["bytes"]) == torch.tensor(2.5).numpy().tobytes()

    first, second, _ = question["tensors"]
    memory[first["offset"] : first["offset"] + 4] = torch.tensor([7e7]).view(torch.uint8)
    memory[second["offset"]] = 9
    memory[question["unchanged"][0][1] + 3] += 1
    (answer,) = looked(held, memory, question)
    floats, integers, few = (tensor.get("figures", [None])[0] for tensor in answer["tensors"])
    assert answer["unchanged"] == [False]
    assert floats["mismatched"] == 1 and floats["worst"][1] == 0
    assert floats["element"]["got"] == list(torch.tensor([7e7]).view(torch.uint8))
    assert integers["mismatched"] == 1 and integers["worst"] == ["inf", 0]


@pytest.mark.parametrize(("change", "same"), [(0.0, "equal"), (1e-6, "close"), (1.0, "other")])
def test_a_second_run_is_compared_with_the_first(tmp_path: Path, change: float, same: str) -> None:
    held, data = keeper(tmp_path)
    memory, question = left_behind(held, data)
    (before,) = looked(held, memory, {**question, "remember": True})
    offset = question["tensors"][0]["offset"]
    memory[offset : offset + 4800].view(torch.float32).mul_(1.0 + change)
    (answer,) = looked(held, memory, {**question, "again": True})
    assert answer["same"] == same
    assert (answer["tensors"] == before["tensors"]) == (same == "equal")


def test_two_runs_are_compared_where_they_lie_side_by_side(tmp_path: Path) -> None:
    held, data = keeper(tmp_path)
    memory, question = left_behind(held, data)
    second = [{**tensor, "offset": tensor["offset"] + memory.numel()} for tensor in question["tensors"]]
    both = memory.repeat(2)
    first, again, alone = looked(
        held, both, {**question, "remember": True}, {**question, "tensors": second, "again": True}, question
    )
    assert again["same"] == "equal" and "same" not in alone
    assert first["tensors"] == again["tensors"] == alone["tensors"]
    both[second[0]["offset"] + 3] ^= 0x40
    assert looked(held, both, {**question, "remember": True}, {**question, "tensors": second, "again": True})[1][
        "same"
    ] == ("other")


def test_others_who_ask_in_between_change_nothing(tmp_path: Path) -> None:
    held, data = keeper(tmp_path)
    memory, question = left_behind(held, data)
    other = memory.clone()
    offset = question["tensors"][0]["offset"]
    other[offset : offset + 4800].view(torch.float32).mul_(2.0)
    (mine,) = looked(held, memory, {**question, "remember": True}, who=1)
    (its,) = looked(held, other, {**question, "remember": True}, who=2)
    assert "same" not in looked(held, other, question, who=3)[0]
    (again,) = looked(held, memory, {**question, "again": True}, who=1)
    assert again["same"] == "equal" and again["tensors"] == mine["tensors"] != its["tensors"]
    (again,) = looked(held, other, {**question, "again": True}, who=2)
    assert again["same"] == "equal" and again["tensors"] == its["tensors"]
    # Nobody's first run is kept for ever.
    assert not held.kept
    for who in range(40):
        looked(held, memory, {**question, "remember": True}, who=who)
    assert len(held.kept) == resident.KEPT
