"""Prediction sets: the threshold against its definition, and the coverage that is guaranteed, by
simulation and on CIFAR-10H.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from core.errors import InputError
from datamodules import CIFAR10H
from metrics.prediction_sets import (
    PredictionSets,
    drawn_labels,
    majority_threshold,
    set_threshold,
)


def by_p_values(probs, target_probs, new, alpha, seed, draws) -> np.ndarray:
    """The sets by the paper's definition: a class is in where the mean over draws of its conformal
    p-value exceeds alpha.
    """
    labels = drawn_labels(target_probs, draws, seed)
    scores = np.take_along_axis(probs, labels, 1)  # [n, draws]
    below = (scores[:, :, None, None] <= new).sum(0)  # [draws, N, K]
    p_values = (1 + below) / (len(probs) + 1)
    return p_values.mean(0) > alpha + 1e-12  # what is equal, but for rounding, does not exceed it


@given(
    seed=st.integers(0, 1000),
    items=st.integers(1, 40),
    alpha=st.sampled_from([0.07, 0.1, 0.25, 0.5]),
    draws=st.sampled_from([1, 3, 10]),
)
def test_a_class_is_in_where_its_mean_p_value_exceeds_alpha(seed, items, alpha, draws):
    rng = np.random.default_rng(seed)
    probs, people = (rng.dirichlet(np.ones(4), items) for _ in range(2))
    new = rng.dirichlet(np.ones(4), 25)
    sets = PredictionSets.of(new, set_threshold(probs, people, alpha, seed, draws))
    expected = by_p_values(probs, people, new, alpha, seed, draws)
    assert (sets.members == expected).all()


def test_labels_are_drawn_as_often_as_people_vote():
    people = np.array([[0.2, 0.0, 0.8], [0.0, 1.0, 0.0]])
    labels = drawn_labels(people, 20_000, seed=0)
    shares = np.stack([(labels == k).mean(1) for k in range(3)], 1)
    np.testing.assert_allclose(shares, people, atol=0.01)
    assert (shares[people == 0] == 0).all()


def simulated(rng: np.random.Generator, items: int) -> tuple[np.ndarray, np.ndarray]:
    """A model that is far too sure, and people who often disagree."""
    truth = rng.normal(size=(items, 5)) * 1.2
    votes = rng.multinomial(10, softmax(truth, 1)) / 10
    return softmax(3 * truth + rng.normal(size=truth.shape), 1), votes


@pytest.mark.parametrize("draws", [1, 10])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_a_drawn_vote_is_covered_as_often_as_is_said(alpha: float, draws: int):
    rng = np.random.default_rng(0)
    covered, by_majority = [], []
    for split in range(120):
        (probs, votes), (new, people) = simulated(rng, 300), simulated(rng, 300)
        least = set_threshold(probs, votes, alpha, split, draws)
        covered.append(PredictionSets.of(new, least).coverage(people).mean())
        usual = majority_threshold(probs, votes, alpha)
        by_majority.append(PredictionSets.of(new, usual).coverage(people).mean())
    error = np.std(covered) / np.sqrt(len(covered))
    assert np.mean(covered) > 1 - alpha - 3 * error
    assert np.mean(covered) < 1 - alpha + 2 / 301 + 3 * error
    assert np.mean(by_majority) < 1 - alpha - 0.05  # what is to be mended


def test_one_vote_for_each_of_few_items_is_enough_for_the_guarantee():
    """Nine items and 1 - alpha = 0.9: the least probability of nine is the threshold."""
    rng = np.random.default_rng(1)
    probs, votes = simulated(rng, 9)
    single = rng.multinomial(1, votes)
    assert set_threshold(probs, single, 0.1, 0, 1) == (probs * single).sum(1).min()
    covered = []
    for _ in range(1500):
        probs, votes = simulated(rng, 10)
        least = set_threshold(probs[:9], rng.multinomial(1, votes[:9]), 0.1, 0, 1)
        covered.append(PredictionSets.of(probs[9:], least).coverage(votes[9:])[0])
    assert np.mean(covered) == pytest.approx(0.9, abs=0.02)


def test_too_few_items_give_sets_of_all_classes():
    probs, votes = simulated(np.random.default_rng(2), 8)
    assert set_threshold(probs, votes, 0.1, 0) == 0.0
    assert (PredictionSets.of(probs, 0.0).size == 5).all()


@pytest.mark.parametrize(("alpha", "draws"), [(0.0, 10), (1.0, 10), (float("nan"), 1), (0.1, 0)])
def test_options_that_make_no_sense_are_told(alpha: float, draws: int):
    with pytest.raises(InputError, match=r"alpha is|draws is"):
        set_threshold(np.full((3, 2), 0.5), np.full((3, 2), 0.5), alpha, 0, draws)


@pytest.mark.long
def test_coverage_over_200_splits_of_cifar10h(real_data: Path):
    """Predictions of a linear head on shrunken pixels, for images that it was not trained on."""
    images, votes = CIFAR10H(root=str(real_data)).read()
    x = torch.nn.functional.avg_pool2d(images.float() / 255, 4).flatten(1)
    x, people = (x - x.mean(0)) / x.std(0), torch.from_numpy(votes.float_probs())
    order = np.random.default_rng(0).permutation(len(x))
    train, rest = order[:5000], order[5000:]
    torch.manual_seed(0)
    head = torch.nn.Sequential(torch.nn.Linear(192, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.Adam(head.parameters(), 3e-3)
    for _ in range(150):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(head(x[train]), people[train]).backward()
        optimizer.step()
    with torch.no_grad():
        probs = head(x[rest]).double().softmax(1).numpy()
    people = votes.take(rest).probs
    unanimous, high = votes.unanimous[rest], votes.high_disagreement()[rest]
    for alpha in (0.05, 0.1, 0.2):
        covered, sizes = [], []
        for split in range(200):
            shuffled = np.random.default_rng([1, split]).permutation(len(probs))
            cal, new = shuffled[:1000], shuffled[1000:]
            sets = PredictionSets.of(
                probs[new], set_threshold(probs[cal], people[cal], alpha, split)
            )
            covered.append(sets.coverage(people[new]).mean())
            sizes.append([sets.size[mask[new]].mean() for mask in (unanimous, ~unanimous, high)])
        assert np.mean(covered) == pytest.approx(1 - alpha, abs=0.01)
        assert (np.diff(np.mean(sizes, 0)) > 0).all()  # larger where people disagree
