"""Scores of ordered classes against scipy and plain definitions."""

import itertools

import numpy as np
import pytest
import torch
from scipy import stats

import metrics
from metrics import functional, registered

RNG = np.random.default_rng(2)
NAMES = ["wasserstein", "rps", "rating_mae", "rating_alpha"]


def pair(items: int = 100, classes: int = 5) -> tuple[np.ndarray, np.ndarray]:
    truth = RNG.dirichlet(np.ones(classes), items)
    return RNG.dirichlet(np.ones(classes), items), RNG.multinomial(7, truth) / 7


def test_wasserstein_agrees_with_scipy():
    probs, targets = pair()
    rating = np.arange(5)
    rows = zip(probs, targets, strict=True)
    expected = np.mean([stats.wasserstein_distance(rating, rating, p, q) for p, q in rows])
    value = functional.wasserstein_distance(probs, targets).item()
    assert value == pytest.approx(expected, abs=1e-12)


def test_ranked_probability_score_agrees_with_brier_scores_of_every_threshold():
    probs, targets = pair()
    expected = sum(((probs[:, :k].sum(1) - targets[:, :k].sum(1)) ** 2).mean() for k in range(1, 5))
    value = functional.ranked_probability_score(probs, targets).item()
    assert value == pytest.approx(expected, abs=1e-12)
    # of two classes it is half the Brier score
    two = pair(classes=2)
    half = functional.soft_brier(*two).item() / 2
    assert functional.ranked_probability_score(*two).item() == pytest.approx(half, abs=1e-12)


def test_mean_rating_error_by_hand():
    probs, targets = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[0.5, 0.0, 0.5], [0.5, 0.25, 0.25]]
    assert functional.mean_rating_error(probs, targets).item() == (0 + 1.25) / 2


def test_alpha_agrees_with_its_definition_over_pairs():
    probs, targets = pair(30)
    units = np.stack([probs @ np.arange(5), targets @ np.arange(5)], 1)
    observed = np.mean([(a - b) ** 2 for a, b in units])
    expected = np.mean([(a - b) ** 2 for a, b in itertools.permutations(units.ravel(), 2)])
    value = functional.rating_alpha(probs, targets).item()
    assert value == pytest.approx(1 - observed / expected, abs=1e-12)
    assert functional.rating_alpha(targets, targets).item() == 1
    constant = np.tile(targets.mean(0), (30, 1))
    assert functional.rating_alpha(constant, targets).item() == pytest.approx(0, abs=0.02)
    same = np.tile([0.2, 0.8], (4, 1))
    assert functional.rating_alpha(same, same).isnan()


@pytest.mark.parametrize("name", ["wasserstein", "rps", "rating_mae"])
def test_no_constant_is_better_than_the_floor(name: str):
    score = registered(ordinal=True)[name]
    for _, train in (pair(), pair(31, 3), pair(50, 2)):
        constant = train.mean(0) if score.floor == "mean" else score.floor(train)
        assert constant.sum() == pytest.approx(1)
        assert (constant >= 0).all()
        classes = train.shape[1]
        others = [RNG.dirichlet(np.ones(classes), 200), RNG.dirichlet(constant * 200 + 1e-3, 200)]
        constants = np.concatenate([constant[None], *others, np.eye(classes)])
        models = torch.from_numpy(constants)[:, None].expand(-1, len(train), -1)
        value, *values = score.of_models(models, torch.from_numpy(train)).tolist()
        assert value <= min(values) + 1e-12


def test_they_join_only_where_classes_are_in_an_order():
    probs, targets = pair()
    without = metrics.every_score(probs, targets)
    joined = metrics.every_score(probs, targets, ordinal=True)
    assert not set(NAMES) & without.keys()
    assert joined.keys() - without.keys() == set(NAMES)
    assert {name: joined[name] for name in without} == without
    collection = metrics.every_metric("", ordinal=True)
    collection.update(probs, targets)
    assert {name: value.item() for name, value in collection.compute().items()} == pytest.approx(
        joined, abs=1e-12
    )
    assert not set(NAMES) & metrics.every_metric("").keys()


def test_the_direction_of_the_order_does_not_matter():
    probs, targets = pair()
    scores = metrics.every_score(probs, targets, ordinal=True)
    turned = metrics.every_score(probs[:, ::-1], targets[:, ::-1], ordinal=True)
    assert {name: turned[name] for name in NAMES} == pytest.approx(
        {name: scores[name] for name in NAMES}, abs=1e-12
    )
