"""What votes take of memory, per item: linear in the number of items, with nothing of the size of a
table of float64 passing through.
"""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from torch import Tensor

from datamodules import (
    LabelSmoothing,
    Multipass,
    ShuffledSLS,
    SoftLabels,
    StochasticLabelSampling,
    VoteTable,
)
from datamodules.votes.delivery import BoundDelivery, Delivery

CLASSES, VOTES = 100, 20


def table(items: int) -> VoteTable:
    return VoteTable(
        np.random.default_rng(0)
        .multinomial(VOTES, np.full(CLASSES, 1 / CLASSES), items)
        .astype(np.int32)
    )


def delivered(delivery: Delivery, votes: VoteTable) -> tuple[BoundDelivery, Tensor]:
    """What is bound, and its first epoch."""
    bound = delivery.bind(votes, 0)
    return bound, bound.targets(0)


# Bytes per item, at the peak of the work: what it leaves behind, and what it needs meanwhile. A
# table of float64 alone would be 800.
WORK: dict[str, tuple[Callable[[VoteTable], object], int]] = {
    "entropy": (lambda votes: votes.entropy, 8 + 8),
    "subsample": (lambda votes: votes.subsample(5, seed=0), 4 * CLASSES),
    "soft labels": (lambda votes: delivered(SoftLabels(), votes), 4 * CLASSES),
    "label smoothing": (lambda votes: delivered(LabelSmoothing(), votes), 4 * CLASSES + 8),
    "SLS": (lambda votes: delivered(StochasticLabelSampling(), votes), VOTES + 16 + 8 + 8),
    "shuffled SLS": (
        lambda votes: delivered(ShuffledSLS(), votes),
        4 * CLASSES + VOTES + 16 + 8,
    ),
    "multipass": (lambda votes: delivered(Multipass(), votes), VOTES + 16 + 8 + 8),
}


@pytest.mark.parametrize("name", WORK)
def test_memory_is_linear_in_the_items_and_no_more_than_what_is_kept(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("datamodules.votes.row_blocks.BLOCK", 1 << 14)
    work, stated = WORK[name]
    per_item = []
    for items in (5_000, 20_000):
        votes = table(items)
        work(table(100))  # what is imported or cached by a first call is not of the table
        tracemalloc.start()
        kept = work(votes)
        per_item.append(tracemalloc.get_traced_memory()[1] / items)
        tracemalloc.stop()
        del kept
    # of torch's own tensors nothing is seen here, only of numpy's
    passing = [number - stated for number in per_item]
    assert passing[1] < 24, per_item
    assert passing[0] - passing[1] < 64, per_item  # the same blocks over fewer items


def test_sampling_from_votes_and_from_their_probabilities_is_the_same():
    votes = table(2_000)
    from_counts, from_probs = (
        StochasticLabelSampling().bind(each, 3)
        for each in (votes, VoteTable.from_probs(votes.probs))
    )
    for epoch in range(20):
        np.testing.assert_array_equal(from_counts.targets(epoch), from_probs.targets(epoch))


def test_votes_too_many_to_be_listed_are_searched_for_the_same_labels(
    monkeypatch: pytest.MonkeyPatch,
):
    counts = np.random.default_rng(0).integers(100, size=(500, 3))
    counts[:, 0] += 1
    listed, searched = (StochasticLabelSampling().bind(VoteTable(counts), 3) for _ in range(2))
    labels = [listed.targets(epoch) for epoch in range(20)]
    monkeypatch.setattr("datamodules.votes.bound_delivery.LISTED", 0)  # then 8 votes a number
    for epoch, expected in enumerate(labels):
        np.testing.assert_array_equal(searched.targets(epoch), expected)
        np.testing.assert_array_equal(searched.targets(epoch, 100, 200), expected[100:200])


@pytest.mark.parametrize("most", [255, 256, 32_767, 32_768, 2**31 - 1])
def test_sampling_reaches_only_classes_with_votes_however_many_there_are(most: int):
    votes = VoteTable([[0, most, 0], [0, 0, 1], [most // 2, 0, most // 2]])
    drawn = np.stack(
        [StochasticLabelSampling().bind(votes, 0).targets(epoch).numpy() for epoch in range(200)]
    )
    assert set(drawn[:, 0]) == {1}
    assert set(drawn[:, 1]) == {2}
    assert set(drawn[:, 2]) == {0, 2}
    assert 60 < (drawn[:, 2] == 0).sum() < 140
