"""MNISTSubset: equal numbers of each digit, validation beside them, MNIST's own test part, all by
the seed alone.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from datamodules import MNISTSubset
from datamodules.datasets.mnist_subset import draw_subset
from datamodules.io.mnist import read_mnist


def loaded(root: Path, **options) -> MNISTSubset:
    data = MNISTSubset(root=str(root), **{"per_class": 7, "val_items": 40} | options)
    data.prepare_data()
    data.setup()
    return data


def test_so_many_of_each_digit_and_the_whole_test_part(small_mnist: Path):
    data = loaded(small_mnist)
    assert data.corpus
    digits = data.corpus.votes.majority
    assert np.bincount(digits[data.rows("train")]).tolist() == [7] * 10
    assert [len(data.rows(name)) for name in ("train", "val", "test")] == [70, 40, 100]
    held_out = read_mnist(str(small_mnist), "test")
    np.testing.assert_array_equal(data.original(data.rows("test"))[:, 0], held_out.images)
    np.testing.assert_array_equal(digits[data.rows("test")], held_out.digits)
    assert (data.corpus.votes.counts == np.eye(10)[digits]).all()
    ((inputs, index),) = data.loader(data.rows("train"), training=False)
    assert inputs.shape == (70, 1, 28, 28)
    assert inputs.mean().item() == pytest.approx(0, abs=1e-5)
    assert inputs.std().item() == pytest.approx(1, abs=1e-3)
    assert index.tolist() == data.rows("train").tolist()


def test_the_seed_draws_the_training_items_and_not_the_test_items(small_mnist: Path):
    first, again, other = (loaded(small_mnist, seed=seed, most_test=30) for seed in (1, 1, 2))
    assert first.corpus
    assert again.corpus
    assert other.corpus
    assert torch.equal(first.corpus.inputs, again.corpus.inputs)  # pyright: ignore[reportArgumentType]
    train, test = first.rows("train"), first.rows("test")
    assert len(test) == 30
    assert not torch.equal(first.original(train), other.original(train))
    assert torch.equal(first.original(test), other.original(test))


@given(st.integers(0, 5), st.integers(1, 20), st.integers(1, 60))
def test_no_item_is_drawn_twice_and_a_larger_subset_holds_the_smaller(
    seed: int, per_class: int, val_items: int
):
    digits = np.random.default_rng(0).permutation(np.arange(300) % 10)
    train, val = draw_subset(digits, per_class, val_items, seed)
    larger, _ = draw_subset(digits, per_class + 1, val_items, seed)
    assert np.bincount(digits[train]).tolist() == [per_class] * 10
    assert len({*train.tolist(), *val.tolist()}) == 10 * per_class + val_items
    assert set(train.tolist()) < set(larger.tolist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_class": 0}, "data.per_class is 0; it must be 1 or more."),
        ({"most_test": 0}, "data.most_test is 0; it must be 1 or more."),
        (
            {"per_class": 91},
            "data.per_class is 91, but a digit of MNIST has only 90 training items.",
        ),
        (
            {"val_items": 831},
            "data.val_items is 831, but only 830 training items are left beside 7 of each digit.",
        ),
    ],
)
def test_more_than_there_is(small_mnist: Path, options: dict, message: str):
    with pytest.raises(InputError, match=message):
        loaded(small_mnist, **options)
