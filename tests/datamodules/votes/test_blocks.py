"""Blocks of an epoch's targets: the labels that the whole epoch has there, for no more than the
block's own time and memory.
"""

import hashlib
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.randomness import advanced, generator
from datamodules.votes.delivery import (
    Delivery,
    DeterministicControl,
    LabelSmoothing,
    MajorityVote,
    Multipass,
    ShuffledSLS,
    SoftLabels,
    StochasticLabelSampling,
)
from datamodules.votes.table import VoteTable
from tests.datamodules.votes.test_delivery import CYCLES, DELIVERIES

# of the targets of `many_votes` in epochs 0, 1 and 7, by the version before there were blocks
BEFORE_BLOCKS = {
    "soft": "40cdf09f89e0c3e0",
    "majority": "56ed4e5a3ab9e719",
    "smoothing": "775038e19bc9ef7f",
    "multipass": "3a7eb06ca3683a92",
    "control": "4e4177f333ed9401",
    "sls": "a533b5247e22b2de",
    "stale sls": "fc4561ac33045138",
    "shuffled sls": "8cd6f036d6ac7a40",
    "mixup": "1180d7152f49d800",
    "mixup of soft labels": "40cdf09f89e0c3e0",
    "mixup of sls": "757abfa8e65e4478",
}
ITEMS = 40_000  # more than the votes that multipass shuffles at once


def many_votes() -> VoteTable:
    """Six votes for most items, and up to 354 for every seventh."""
    rng = np.random.default_rng(5)
    counts = rng.multinomial(6, rng.dirichlet(np.full(5, 0.4), ITEMS)).astype(np.int32)
    counts[::7] *= rng.integers(1, 60, (len(counts[::7]), 1)).astype(np.int32)
    return VoteTable(counts)


VOTES = many_votes()


def pieces(boundaries: list[int]) -> list[tuple[int, int]]:
    ends = [0, *sorted(boundaries), ITEMS]
    return list(pairwise(ends))


@pytest.mark.parametrize("name", DELIVERIES)
def test_whole_epochs_are_those_of_earlier_versions(name: str):
    digest, bound = hashlib.sha256(), DELIVERIES[name].bind(VOTES, 3)
    for epoch in (0, 1, 7):
        digest.update(bound.targets(epoch).numpy().tobytes())
    assert digest.hexdigest()[:16] == BEFORE_BLOCKS[name]


@pytest.mark.parametrize("name", DELIVERIES)
@given(
    boundaries=st.lists(st.integers(0, ITEMS), max_size=4),
    seed=st.integers(0, 2**32),
    epoch=st.integers(0, 10_000),
    probabilities=st.booleans(),
    whole_first=st.booleans(),
)
@settings(max_examples=8, deadline=None)
def test_blocks_in_a_row_are_the_whole_epoch(
    name: str,
    boundaries: list[int],
    seed: int,
    epoch: int,
    probabilities: bool,
    whole_first: bool,
):
    votes = VOTES
    if probabilities and name not in CYCLES:
        votes = VoteTable.from_probs(VOTES.probs)
    whole = DELIVERIES[name].bind(votes, seed).targets(epoch)
    bound = DELIVERIES[name].bind(votes, seed)
    if whole_first:
        bound.targets(epoch + 1)
    blocks = [bound.targets(epoch, *piece) for piece in reversed(pieces(boundaries))]
    assert torch.equal(torch.cat(blocks[::-1]), whole)
    assert {block.dtype for block in blocks} == {whole.dtype}


@pytest.mark.parametrize("name", DELIVERIES)
def test_a_part_of_a_block_and_a_block_without_a_stop(name: str):
    bound, whole = DELIVERIES[name].bind(VOTES, 1), DELIVERIES[name].bind(VOTES, 1).targets(4)
    for start, stop in ((20_000, 30_000), (21_000, 22_000), (30_000, None), (39_999, 40_000)):
        assert torch.equal(bound.targets(4, start, stop), whole[start:stop])


@pytest.mark.parametrize("block", [(-1, 5), (5, 4), (0, ITEMS + 1), (ITEMS + 1, None)])
def test_a_block_outside_the_table_is_refused(block: tuple[int, int | None]):
    with pytest.raises(InputError, match=r"is not within the 40000 items there are"):
        SoftLabels().bind(VOTES, 0).targets(0, *block)


@given(st.integers(0, 5000), st.integers(0, 2**40))
def test_a_generator_is_advanced_by_as_many_numbers(numbers: int, seed: int):
    there, drawn = generator(seed, "x"), generator(seed, "x")
    drawn.random(numbers)
    assert advanced(there, numbers).random() == drawn.random()


BIG = 400_000
PER_ITEM: dict[str, tuple[Delivery, int]] = {  # bytes of numpy's arrays for each item of a block
    "soft": (SoftLabels(), 40),
    "majority": (MajorityVote(), 16),
    "smoothing": (LabelSmoothing(), 16),
    "sls": (StochasticLabelSampling(), 48),
    "multipass": (Multipass(), 200),
    "control": (DeterministicControl(), 200),
}


@pytest.mark.parametrize("name", PER_ITEM)
@pytest.mark.parametrize("start", [0, 399_000 - 1])
def test_a_block_takes_the_memory_of_its_items(
    name: str, start: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("datamodules.votes.row_blocks.BLOCK", 1 << 10)
    delivery, per_item = PER_ITEM[name]
    votes = VoteTable(np.tile(np.array([[3, 1]], np.int32), (BIG, 1)))
    delivery.bind(votes, 0).targets(0, start, start + 10)  # imports, and the sums of votes
    tracemalloc.start()
    kept = delivery.bind(votes, 0).targets(1, start, start + 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(kept) == 1000
    assert peak < 1000 * per_item + 40_000  # a table of all items would take 3,200,000


def test_shuffled_sampling_takes_the_memory_of_its_order_and_of_the_block():
    votes = VoteTable(np.tile(np.array([[3, 1]], np.int32), (BIG, 1)))
    bound = ShuffledSLS().bind(votes, 0)
    tracemalloc.start()
    bound.targets(1, 1000, 2000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
