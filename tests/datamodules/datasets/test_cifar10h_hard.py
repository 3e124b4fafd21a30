"""CIFAR-10H-Hard: which images it holds, that a run's seed does not change them, and the published
number of them.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from core.errors import InputError
from datamodules import CIFAR10H, CIFAR10HHard, VoteTable
from datamodules.datasets.cifar10h_hard import evenly_by_entropy
from tests.conftest import trust
from tests.datamodules.embedders.small_embedder import SmallEmbedder


def hard(root: Path, **options) -> CIFAR10HHard:
    return CIFAR10HHard(SmallEmbedder(), root=str(root), cache=str(root / "embeddings"), **options)


@pytest.fixture
def crowded() -> VoteTable:
    """Three levels of entropy in two of ten bins and at the very top: 900 unanimous items, 300 of
    some disagreement, 2 of the most.
    """
    return VoteTable(
        np.random.default_rng(0).permutation([[20, 0]] * 900 + [[19, 1]] * 300 + [[10, 10]] * 2)
    )


def test_at_most_200_of_each_bin_and_none_of_the_largest_entropy(crowded: VoteTable):
    chosen = crowded.take(evenly_by_entropy(crowded, seed=0))
    assert chosen.counts is not None
    assert sorted(map(tuple, np.unique(chosen.counts, axis=0).tolist())) == [(19, 1), (20, 0)]
    assert np.unique(chosen.counts[:, 1], return_counts=True)[1].tolist() == [200, 200]


def test_the_choice_within_a_bin_is_seeded_and_fair(crowded: VoteTable):
    assert np.array_equal(evenly_by_entropy(crowded, 3), evenly_by_entropy(crowded, 3))
    times = np.bincount(
        np.concatenate([evenly_by_entropy(crowded, seed) for seed in range(300)]),
        minlength=len(crowded),
    )
    for level, share in (([20, 0], 200 / 900), ([19, 1], 200 / 300)):
        seen = times[(crowded.counts == level).all(1)] / 300
        assert seen.mean() == pytest.approx(share)
        assert np.abs(seen - share).max() < 5 * np.sqrt(share * (1 - share) / 300)


def test_images_and_votes_of_the_same_items(small_cifar: Path):
    images, votes = CIFAR10H(root=str(small_cifar)).read()
    rows = evenly_by_entropy(votes, seed=0)
    data = hard(small_cifar)
    data.prepare_data()
    data.setup()
    assert data.corpus
    assert 0 < len(rows) < 60
    assert np.array_equal(data.corpus.votes.probs, votes.probs[rows])
    shown = data.original([0, len(rows) - 1])
    assert torch.equal(shown, images[torch.from_numpy(rows[[0, -1]])])  # pyright: ignore
    assert data.corpus.inputs.shape == (len(rows), 8)  # pyright: ignore
    assert data.class_names[0] == "airplane"
    assert not set(data.rows("val")) & set(data.rows("test"))


def test_the_images_follow_the_runs_seed_only_where_the_option_says_so(real_data: Path):
    def votes(**options) -> list:
        return (
            CIFAR10HHard(SmallEmbedder(), root=str(real_data), **options).read()[1].probs.tolist()
        )

    assert votes(seed=0) == votes(seed=1)
    assert votes(seed=0) != votes(seed=0, choice_seed=1)
    assert votes(seed=1, choice_seed=None) == votes(seed=0, choice_seed=1)


def test_counts_that_fit_other_images(small_cifar: Path, monkeypatch: pytest.MonkeyPatch):
    np.save(small_cifar / CIFAR10H.COUNTS.path, np.ones((59, 10), dtype=int))
    trust(monkeypatch, small_cifar)
    with pytest.raises(
        InputError, match=r"there are 60 inputs but .*cifar10h-counts.npy has 59 rows"
    ):
        hard(small_cifar).read()


def test_the_published_data_is_that_of_the_papers_table_1(real_data: Path):
    data = CIFAR10HHard(SmallEmbedder(), root=str(real_data))
    images, votes = data.read()
    assert images.shape == (1103, 3, 32, 32)
    assert images.dtype == torch.uint8
    assert votes.counts is not None
    assert votes.counts.sum(1).mean() == pytest.approx(51, abs=0.5)
    assert votes.normalized_entropy.mean() == pytest.approx(0.24, abs=0.005)
    assert votes.normalized_entropy.std() == pytest.approx(0.16, abs=0.005)
    assert [len(rows) for rows in data.split(votes).values()] == [772, 166, 165]
