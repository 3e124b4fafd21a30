"""Distances to annotators against scipy and plain definitions."""

import itertools

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial.distance import jensenshannon

from metrics import functional, registered

RNG = np.random.default_rng(0)


def votes_of(items: int, classes: int, votes: int) -> np.ndarray:
    """Shares of few votes: many ties and zeros."""
    return RNG.multinomial(votes, RNG.dirichlet(np.full(classes, 0.5), items)) / votes


def pair(items: int = 200, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    return RNG.dirichlet(np.full(classes, 0.7), items), votes_of(items, classes, 5)


def test_total_variation_is_half_the_city_block_distance_and_1_minus_soft_accuracy():
    probs, targets = pair()
    expected = np.mean([np.abs(p - q).sum() / 2 for p, q in zip(probs, targets, strict=True)])
    value = functional.total_variation(probs, targets).item()
    assert value == pytest.approx(expected, abs=1e-12)
    shared = np.minimum(probs, targets).sum()
    assert 1 - value == pytest.approx(shared / len(probs), abs=1e-12)  # soft accuracy
    assert 1 - value == pytest.approx(2 * shared / (probs.sum() + targets.sum()))  # soft micro F1


def test_jensen_shannon_agrees_with_scipy():
    """scipy gives the distance, which is the square root of the divergence."""
    probs, targets = pair()
    expected = np.mean(jensenshannon(probs, targets, axis=1) ** 2)
    assert functional.js_divergence(probs, targets).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("absolute", [True, False])
def test_entropy_calibration_error_agrees_with_scipy(absolute: bool):
    probs, targets = pair()
    errors = stats.entropy(probs, axis=1) - stats.entropy(targets, axis=1)
    expected = np.mean(np.abs(errors) if absolute else errors)
    value = functional.entropy_calibration_error(probs, targets, absolute).item()
    assert value == pytest.approx(expected, abs=1e-12)


def ranked_alike(model: np.ndarray, people: np.ndarray) -> bool:
    """Whichever of two classes has more votes, the model says is likelier."""
    pairs = itertools.permutations(range(len(model)), 2)
    return all(model[a] > model[b] for a, b in pairs if people[a] > people[b])


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_rank_calibration_agrees_with_a_look_at_every_two_classes(classes: int):
    targets = votes_of(300, classes, 7)
    for probs in (targets, votes_of(300, classes, 6), targets * 0.9 + 0.1 / classes):
        expected = np.mean([ranked_alike(*rows) for rows in zip(probs, targets, strict=True)])
        value = functional.rank_calibration_score(probs, targets).item()
        assert value == pytest.approx(expected, abs=1e-12)
        orders = [np.argsort(-table, axis=1, kind="stable") for table in (probs, targets)]
        first = functional.rank_calibration_score(probs, targets, ties="first").item()
        assert first == pytest.approx(np.mean((orders[0] == orders[1]).all(1)), abs=1e-12)
    assert functional.rank_calibration_score(targets, targets).item() == 1


def test_rank_calibration_by_hand():
    people = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [0.5, 0.5, 0.0]]
    model = [[0.5, 0.2, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7], [0.2, 0.2, 0.6], [0.4, 0.6, 0.0]]
    # alike; another first; alike; a tie where people rank; a tie of people's
    assert functional.rank_calibration_score(model, people).item() == pytest.approx(3 / 5)
    assert functional.rank_calibration_score(model, people, ties="first").item() == (
        pytest.approx(1 / 5)
    )


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("concentration", [0.1, 1.0])
@pytest.mark.parametrize("name", ["tvd", "js"])
def test_no_constant_is_better_than_the_floor(name: str, classes: int, concentration: float):
    score = registered()[name]
    for train in (RNG.dirichlet(np.full(classes, concentration), 101), votes_of(40, classes, 3)):
        constant = score.floor(train)
        assert constant.sum() == pytest.approx(1)
        assert (constant >= 0).all()
        constants = np.concatenate(
            [
                constant[None],
                RNG.dirichlet(np.ones(classes), 300),
                RNG.dirichlet(constant * 300 + 1e-3, 300),
                train.mean(0, keepdims=True),
                np.eye(classes),
            ]
        )
        models = torch.from_numpy(constants)[:, None].expand(-1, len(train), -1)
        value, *values = score.of_models(models, torch.from_numpy(train)).tolist()
        assert value <= min(values) + (1e-12 if name == "tvd" else 1e-3 * value)


def test_many_models_at_once_are_scored_as_each_alone():
    targets = torch.from_numpy(votes_of(60, 4, 5))
    models = torch.stack([torch.from_numpy(votes_of(60, 4, 9)) for _ in range(3)])
    models[1, 7] = torch.nan
    for score in registered(ordinal=True).values():
        if score.batched:
            one, diverged, other = score.of_models(models, targets).tolist()
            assert one == pytest.approx(score.value(models[0], targets).item(), abs=1e-15)
            assert np.isnan(diverged), score.name
            assert other == pytest.approx(score.value(models[2], targets).item(), abs=1e-15)
