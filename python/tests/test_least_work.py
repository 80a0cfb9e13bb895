"""What a call must do at least, found by trying."""

from __future__ import annotations

import math
import random

import pytest
import torch
from tilewright.cell import least_work as module
from tilewright.cell.least_work import at_least, least_work


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """On a busy machine, too, all is tried."""
    monkeypatch.setattr(module, "SECONDS", 1e6)
    torch.set_num_threads(1)
    torch.manual_seed(0)


def work(function, *tensors: torch.Tensor) -> dict[str, int]:
    """Least work of a function of tensors."""
    return least_work(lambda: function(*tensors), list(tensors))


def test_elementwise_reads_and_writes_all():
    x = torch.randn(64, 128)
    found = work(torch.relu, x)
    assert 0.9 * x.nbytes < found["read"] <= x.nbytes
    assert found == {**found, "written": x.nbytes, "flops": 0}


def test_inputs_are_as_before():
    x, y = torch.randn(100), torch.randn(100)
    before = x.clone(), y.clone()
    work(lambda a, b: a.add_(b), x, y)
    assert torch.equal(x, before[0]) and torch.equal(y, before[1])


def test_what_is_sliced_away_masked_or_not_looked_up_is_not_needed():
    x = torch.randn(512, 64)
    assert work(lambda a: a[:, :4] * 2, x)["read"] < 0.2 * x.nbytes
    mask = torch.zeros(512, 1)
    mask[:64] = 1
    # The mask decides: where it is zero, no value of the row matters.
    assert work(lambda a, m: torch.where(m > 0, a, 0.0), x, mask)["read"] < 0.3 * x.nbytes
    table, rows = torch.randn(4_000, 64), torch.randint(0, 4_000, (20,))
    assert work(lambda t, r: t[r], table, rows)["read"] < 0.1 * table.nbytes


def test_needless_work_is_not_counted():
    x, w = torch.randn(64, 64), torch.randn(64, 64)
    assert work(lambda a: (a - a) + 1.0, x)["read"] == 0
    assert work(lambda a, b: torch.mm(a, b) * 0.0 + a, x, w)["flops"] == 0
    # The mean of a linear layer needs its column means alone.
    assert work(lambda a, b: torch.mm(a, b).mean(dim=1), x, w)["flops"] == 0


def test_a_product_is_counted_once_and_by_its_rank():
    x, w = torch.randn(64, 64), torch.randn(64, 64)
    whole = 2 * 64**3
    assert 0.75 * whole < work(torch.mm, x, w)["flops"] <= whole
    assert 0.75 * whole < work(lambda a, b: torch.relu(torch.mm(a, b)) + torch.mm(a, b), x, w)["flops"] <= whole
    thin = torch.randn(64, 4) @ torch.randn(4, 64)
    assert work(torch.mm, x, thin)["flops"] < 0.1 * whole
    assert work(torch.mm, x, torch.eye(64)[:1].repeat(64, 1))["flops"] < 0.1 * whole


def test_linear_layers_fold():
    x, w, v = torch.randn(64, 64), torch.randn(64, 64), torch.randn(64, 64)
    assert work(lambda a, b, c: a @ b @ c, x, w, v)["flops"] <= 2 * 64**3


def test_what_varies_has_no_least_work():
    assert work(lambda a: a + torch.rand(4), torch.ones(4)) == {"read": 0, "written": 0, "flops": 0}


def test_what_cannot_be_tried_has_no_least_work():
    def fails_when_changed(a):
        if a[0] != 1.0 or not a.is_contiguous():
            raise RuntimeError("no")
        raise torch.OutOfMemoryError("too large")

    assert work(fails_when_changed, torch.ones(4)) == {"read": 0, "written": 0, "flops": 0}


def test_modified_state_is_written():
    state, x = torch.zeros(1000), torch.randn(1000)
    found = work(lambda s, a: s.add_(a).sum(), state, x)
    assert found["written"] >= state.nbytes
    assert torch.equal(state, torch.zeros(1000))


def test_what_stays_of_a_tensor_that_is_changed_in_place_is_neither_read_nor_written():
    cache, x = torch.randn(512, 64), torch.randn(4, 64)

    def update(cache, x):
        cache[7:11] = x
        return cache

    found = work(update, cache, x)
    assert found["written"] <= x.nbytes
    assert found["read"] <= x.nbytes
    # Where all of it decides, it is read.
    found = work(lambda c, a: (update(c, a), c.sum(1))[1], cache, x)
    assert found["read"] > 0.85 * cache.nbytes
    assert found["written"] <= x.nbytes + 512 * 4


def test_an_input_that_is_returned_is_neither_read_nor_written():
    x, y = torch.randn(512, 64), torch.randn(64)
    found = work(lambda a, b: (a, a[3:].T, b * 2), x, y)
    assert found["read"] <= y.nbytes and found["written"] == y.nbytes


def test_results_that_others_tell_are_written_once():
    x = torch.randn(32, 64)
    assert work(lambda a: a * 2 + torch.zeros(16, 1, 1), x)["written"] == x.nbytes
    assert work(lambda a: a.mean(1, keepdim=True).expand(32, 64), x)["written"] == 32 * 4
    assert work(lambda a: a.mean(1, keepdim=True) * torch.ones(64), x)["written"] == 32 * 4
    assert work(lambda a: (y := a * 2, y.T.contiguous()), x)["written"] == x.nbytes
    assert work(lambda a: (y := a * 2, y[3:], y.T), x)["written"] == x.nbytes
    assert work(lambda a: (a * 2, a * 3), x)["written"] == 2 * x.nbytes


def test_what_is_in_memory_twice_is_read_once():
    weight, x = torch.randn(64, 64), torch.randn(64, 64)
    whole = weight.nbytes + x.nbytes
    tied = least_work(lambda: torch.mm(x, weight) + weight, [x, weight, weight, weight.view(-1)])
    assert 0.9 * whole < tied["read"] <= whole
    copy = x.clone()
    assert work(lambda a, b, w: torch.mm(a, w) + b, x, copy, weight)["read"] <= whole
    symmetric = weight + weight.T
    for flat in (symmetric, symmetric.reshape(-1)):
        assert work(lambda a, w: torch.mm(a, w.view(64, 64)), x, flat)["read"] <= whole - weight.nbytes // 2
    waves = torch.randn(16, 16, dtype=torch.complex64)
    assert 0.9 * waves.nbytes < work(lambda a: a * 2, waves)["read"] <= waves.nbytes
    assert work(lambda a: a * 2, waves + waves.T)["read"] <= waves.nbytes // 2


def test_zeros_may_be_known():
    x, w = torch.randn(256, 256), torch.randn(256)
    found = work(lambda a, b: a.triu() @ b, x.triu(), w)
    assert found["read"] < 0.65 * x.nbytes


def test_products_of_matrices_with_structure_count_for_what_is_in_them():
    size = 64
    x, w = torch.randn(size, size), torch.randn(size, size)
    whole = 2 * size**3
    assert work(lambda a, b: torch.diag(a) @ b, torch.randn(size), w)["flops"] <= 2 * size**2
    blocks = [torch.randn(8, 8) for _ in range(8)]
    assert least_work(lambda: x @ torch.block_diag(*blocks), [x, *blocks])["flops"] <= whole / 8
    assert work(lambda a, b: a.triu() @ b.triu(), x, w)["flops"] <= whole / 4
    # 8 x 8 matrices say all of it.
    a, b, thin = torch.randn(8, 8), torch.randn(8, 8), torch.randn(64, 2)
    assert least_work(lambda: torch.kron(a, b) @ thin, [a, b, thin])["flops"] == 0
    # A bias that all rows have does not hide the rest.
    assert work(torch.mm, x + 100.0, w)["flops"] > 0.7 * whole


def test_a_rank_that_is_not_seen_is_not_claimed(monkeypatch):
    monkeypatch.setattr(module, "RANK_SIDE", 16)
    x, up, down = torch.randn(64, 64), torch.randn(64, 16), torch.randn(16, 64)
    assert work(lambda a, b, c: a @ (b @ c), x, up, down)["flops"] <= 2 * 2 * 64 * 64 * 16


def test_indices_are_not_led_astray():
    table, rows = torch.randn(8, 4), torch.randint(4, 8, (4096,))
    found = work(lambda t, r: torch.nn.functional.embedding(r, t), table, rows)
    assert found["read"] > 0.9 * rows.nbytes


@pytest.mark.parametrize(("hits", "tries"), [(96, 96), (90, 96), (48, 96), (1, 96), (24, 24)])
def test_the_bound_holds_as_often_as_it_says(hits: int, tries: int):
    """At the bound itself, so many hits or more are seen once in a hundred times."""
    bound = at_least(hits, tries)
    assert 0 < bound < hits / tries
    odds = sum(math.comb(tries, k) * bound**k * (1 - bound) ** (tries - k) for k in range(hits, tries + 1))
    assert abs(odds - 0.01) < 1e-6
    rng = random.Random(hits)
    seen = sum(sum(rng.random() < bound for _ in range(tries)) >= hits for _ in range(1000))
    assert seen < 28


def test_nothing_seen_says_nothing():
    assert at_least(0, 96) == 0.0
