"""Batch order: every item once per epoch over all ranks, a function of (seed, epoch, rank),
resumable in mid-epoch.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from datamodules.order import BatchOrder

# of items (also fewer than ranks), batches and ranks
sizes = st.tuples(st.integers(1, 60), st.integers(5, 30), st.integers(1, 5))


def batches(
    items: int,
    batch_size: int,
    seed: int,
    epoch: int,
    rank: int = 0,
    ranks: int = 1,
    shuffle: bool = True,
) -> list[list[int]]:
    order = BatchOrder(torch.arange(items), batch_size, seed, shuffle, rank, ranks)
    order.set_epoch(epoch)
    return [batch.tolist() for batch in order]


@given(sizes, st.integers(0, 3), st.booleans())
def test_every_item_once_per_epoch_over_all_ranks(
    size: tuple[int, int, int], epoch: int, shuffle: bool
):
    items, batch_size, ranks = size
    shares = [batches(items, batch_size, 0, epoch, rank, ranks, shuffle) for rank in range(ranks)]
    assert sorted(item for share in shares for batch in share for item in batch) == list(
        range(items)
    )


@given(sizes)
def test_all_ranks_see_equally_many_batches_and_their_shares_differ_by_one_item_at_most(
    size: tuple[int, int, int],
):
    items, batch_size, ranks = size
    shares = [batches(items, batch_size, 0, 0, rank, ranks) for rank in range(ranks)]
    assert len({len(share) for share in shares}) == 1
    assert len(shares[0]) == len(BatchOrder(torch.arange(items), batch_size, 0, True, 0, ranks))
    for parts in zip(*shares, strict=True):
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert len(shares[0][-1]) >= 1  # the first rank always has something


@given(sizes)
def test_global_batches_do_not_depend_on_the_number_of_ranks(size: tuple[int, int, int]):
    items, batch_size, ranks = size
    alone = batches(items, batch_size, 3, 1)
    shares = [batches(items, batch_size, 3, 1, rank, ranks) for rank in range(ranks)]
    for batch, *parts in zip(alone, *shares, strict=True):
        assert [batch[rank::ranks] for rank in range(ranks)] == parts


def test_order_changes_with_seed_and_epoch_and_with_nothing_else():
    first = batches(50, 8, seed=0, epoch=0)
    torch.manual_seed(123)
    assert batches(50, 8, seed=0, epoch=0) == first
    assert batches(50, 8, seed=0, epoch=1) != first
    assert batches(50, 8, seed=1, epoch=0) != first


def test_items_keep_their_own_numbers():
    order = BatchOrder(torch.tensor([5, 9, 2]), 2, 0, shuffle=False)
    assert [batch.tolist() for batch in order] == [[5, 9], [2]]


@pytest.mark.parametrize("given", [0, 1, 3, 6])
def test_continues_after_the_batches_already_given(given: int):
    whole = batches(50, 8, seed=0, epoch=2)
    order = BatchOrder(torch.arange(50), 8, 0, shuffle=True)
    order.set_epoch(2)
    stream = iter(order)
    for _ in range(given):
        next(stream)
    resumed = BatchOrder(torch.arange(50), 8, 0, shuffle=True)
    resumed.load_state_dict(order.state_dict())
    resumed.set_epoch(2)
    assert [batch.tolist() for batch in resumed] == whole[given:]
    resumed.set_epoch(3)
    assert [batch.tolist() for batch in resumed] == batches(50, 8, seed=0, epoch=3)


def test_a_finished_epoch_is_not_continued():
    order = BatchOrder(torch.arange(10), 4, 0, shuffle=True)
    list(order)
    resumed = BatchOrder(torch.arange(10), 4, 0, shuffle=True)
    resumed.load_state_dict(order.state_dict())
    resumed.set_epoch(1)
    assert len(list(resumed)) == 3


def test_too_small_a_batch_for_the_devices():
    with pytest.raises(InputError, match="batch_size is 2; it is shared by 4"):
        BatchOrder(torch.arange(10), 2, 0, True, 0, 4)


@pytest.mark.parametrize(("items", "batch_size", "ranks"), [(10, 4, 1), (10, 3, 2), (97, 8, 3)])
def test_every_rank_knows_the_items_of_all(items: int, batch_size: int, ranks: int):
    orders = [
        BatchOrder(torch.arange(items), batch_size, 0, True, rank, ranks) for rank in range(ranks)
    ]
    for number, shares in enumerate(zip(*orders, strict=True)):
        together = sum(len(share) for share in shares)
        assert [order.items_of_batch(number) for order in orders] == [together] * ranks


def test_an_order_is_given_where_it_is_wanted():
    order = BatchOrder(torch.arange(10), 4, seed=0, shuffle=True)
    before = [batch.tolist() for batch in order]
    order.to(torch.device("meta"))
    assert {batch.device.type for batch in order} == {"meta"}
    order.to(torch.device("cpu"))
    assert [batch.tolist() for batch in order] == before
