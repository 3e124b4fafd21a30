"""How many threads a training on a CPU gets."""

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from lightning_modules.networks import SimpleFFN
from lightning_modules.threads import SMALL, TOLD_BY, one_thread, use_threads_for


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = torch.get_num_threads()
    for name in TOLD_BY:
        monkeypatch.delenv(name, raising=False)
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_a_small_network_gets_one():
    use_threads_for(SimpleFFN((1, 28, 28), 10), (1, 28, 28), batch_size=64)
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(("more", "threads"), [(0, 3), (-1, 1)])
def test_the_rule_is_the_work_of_a_step(more: int, threads: int):
    """Forward and backward are three times the forward pass, which is two operations a weight."""
    batch_size = int(SMALL) // (3 * 2 * 1000) + 1
    use_threads_for(nn.Linear(100, 10), (100,), batch_size + more)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("name", TOLD_BY)
def test_who_says_how_many_gets_them(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(name, "3")
    use_threads_for(SimpleFFN((1, 28, 28), 10), (1, 28, 28), batch_size=64)
    assert torch.get_num_threads() == 3


def test_the_network_is_left_as_it_was():
    network = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    use_threads_for(network, (4,), batch_size=8)
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_one_thread_for_a_while():
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3
