"""Floors and ceilings from votes alone, against truths that are known because they were made."""

import numpy as np
import pytest

from core.errors import InputError
from metrics import every_score
from metrics.worth import score_bounds, split_half_scores

ITEMS = 4000
LONG = pytest.mark.long
PROPER = ("soft_nll", "kl", "soft_brier")
CORRELATIONS = ("entropy_spearman", "entropy_pearson")


def dirichlet(rng: np.random.Generator, classes: int, sharp: bool) -> np.ndarray:
    mean = rng.dirichlet(np.full(classes, 5.0))
    return rng.dirichlet(mean * classes * (0.15 if sharp else 2.0), ITEMS)


def logistic_normal(rng: np.random.Generator, classes: int, sharp: bool) -> np.ndarray:
    """No mixture of a few Dirichlets: correlated normal logits."""
    mixing = np.eye(classes) + rng.normal(0, 0.5, (classes, classes)) / np.sqrt(classes)
    logits = rng.normal(0, 0.5, classes) + rng.normal(size=(ITEMS, classes)) @ mixing * (
        4.0 if sharp else 0.8
    )
    chances = np.exp(logits - logits.max(1, keepdims=True))
    return chances / chances.sum(1, keepdims=True)


def true_ceilings(
    truth: np.ndarray, votes: int, rng: np.random.Generator, times: int = 5
) -> dict[str, float]:
    """What the truth itself scores against votes drawn from it, on average."""
    tables = [every_score(truth, rng.multinomial(votes, truth) / votes) for _ in range(times)]
    return {name: float(np.mean([table[name] for table in tables])) for name in tables[0]}


@pytest.mark.parametrize("sharp", [True, False], ids=["sharp", "flat"])
@pytest.mark.parametrize("classes", [3, pytest.param(10, marks=LONG)])
@pytest.mark.parametrize("family", [dirichlet, logistic_normal])
@pytest.mark.parametrize(
    "votes", [3, pytest.param(7, marks=LONG), 50, pytest.param(100, marks=LONG)]
)
def test_ceilings_are_those_of_a_model_that_knows_the_truth(family, votes, classes, sharp):
    rng = np.random.default_rng([votes, classes, sharp])
    truth = family(rng, classes, sharp)
    counts = rng.multinomial(votes, truth)
    bounds, expected = score_bounds(counts, counts), true_ceilings(truth, votes, rng)
    for name in (*PROPER, "accuracy", "ece", *CORRELATIONS):
        bound = bounds[name]
        room = abs(bound.floor - expected[name]) if bound.floor is not None else 0.2
        # these items' own votes are one draw of many: two standard errors, or more
        slack = 0.05 * room + (0 if name in PROPER else 2 / np.sqrt(ITEMS))
        assert bound.low - slack <= expected[name] <= bound.high + slack, (name, bound, expected)
        if votes >= 50:
            assert abs(bound.ceiling - expected[name]) <= slack, (name, bound, expected)


def test_floors_are_the_best_constants():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(20, dirichlet(rng, 4, sharp=True))
    votes, bounds = counts / 20, score_bounds(counts, counts)
    for name in PROPER:
        others = rng.dirichlet(np.full(4, 2.0), 50)
        values = [every_score(np.tile(other, (ITEMS, 1)), votes)[name] for other in others]
        assert bounds[name].floor < min(values)
    assert bounds["accuracy"].floor == np.bincount(votes.argmax(1)).max() / ITEMS
    assert bounds["entropy_pearson"].floor == 0
    assert bounds["ece"].floor is None
    assert bounds["ece"].skill(0.1) is None


def test_few_votes_give_an_interval_and_many_a_number():
    rng = np.random.default_rng(1)
    truth = dirichlet(rng, 10, sharp=False)
    few, many = (rng.multinomial(votes, truth) for votes in (3, 100))
    assert score_bounds(few, few)["soft_nll"].uncertain
    assert not score_bounds(many, many)["soft_nll"].uncertain


def test_two_halves_of_the_annotators():
    rng = np.random.default_rng(2)
    truth = dirichlet(rng, 3, sharp=True)
    counts = rng.multinomial(rng.integers(1, 40, ITEMS), truth)
    several = counts[counts.sum(1) > 1]
    sizes = several.sum(1) // 2
    halves = [rng.multivariate_hypergeometric(row, size) for row, size in zip(several, sizes)]  # noqa: B905
    half = np.array(halves)
    rest = several - half
    expected = every_score(half / half.sum(1, keepdims=True), rest / rest.sum(1, keepdims=True))
    found = split_half_scores(counts)
    assert found["soft_brier"] == pytest.approx(expected["soft_brier"], abs=0.02)
    assert found["accuracy"] == pytest.approx(expected["accuracy"], abs=0.02)


@pytest.mark.parametrize("function", [split_half_scores, lambda c: score_bounds(c, c)])
def test_too_few_items_are_told_in_a_sentence(function):
    with pytest.raises(InputError, match=r"2 items have .* fewer than 3\."):
        function(np.array([[2, 1], [3, 0]]))


@pytest.mark.parametrize(
    "counts",
    [
        np.array([[1, 0], [0, 1], [1, 0], [1, 0]]),  # a vote each
        np.array([[5, 0, 0], [3, 2, 0], [0, 5, 0], [4, 1, 0]]),  # a class without votes
        np.array([[5, 0]] * 4),  # all agree
    ],
)
def test_odd_tables_give_numbers_where_a_score_is_defined(counts):
    bounds = score_bounds(counts, counts)
    for name in (*PROPER, "accuracy"):
        bound = bounds[name]
        assert np.isfinite([bound.floor, bound.ceiling, bound.low, bound.high]).all(), name
