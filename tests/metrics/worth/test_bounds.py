"""Floors and ceilings from votes alone, against truths that are known because they were made."""

from itertools import product

import numpy as np
import pytest

from metrics import every_score, registered
from metrics.worth import part_bounds, score_bounds, split_half_scores
from metrics.worth.floors import score_values
from tests.metrics.worth.made_truths import (
    ITEMS,
    SCORES,
    dirichlet,
    logistic_normal,
    mostly_agreed,
)

PROPER = ("soft_nll", "kl", "soft_brier")
CORRELATIONS = ("entropy_spearman", "entropy_pearson")


QUICK = [  # of all cases
    (dirichlet, 3, 3, False),
    (logistic_normal, 3, 3, True),
    (mostly_agreed, 3, 3, False),
    (dirichlet, 50, 3, False),
    (logistic_normal, 50, 10, False),
    (mostly_agreed, 50, 10, True),
]
CASES = list(
    product((dirichlet, logistic_normal, mostly_agreed), (3, 7, 50, 100), (3, 10), (True, False))
)


@pytest.mark.parametrize(
    ("family", "votes", "classes", "sharp"),
    [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.long) for case in CASES],
)
def test_ceilings_are_those_of_a_model_that_knows_the_truth(family, votes, classes, sharp):
    """Within 5 % of (floor - ceiling), or within an interval where votes are too few to tell."""
    rng = np.random.default_rng([votes, classes, sharp])
    truth = family(rng, classes, sharp)
    counts = rng.multinomial(votes, truth)
    scores = [registered()[name] for name in (*PROPER, "accuracy", "ece", *CORRELATIONS)]
    bounds = score_bounds(counts, counts, scores)
    for score, found in zip(scores, score_values(scores, truth, counts / votes), strict=True):
        bound = bounds[score.name]
        room = max(0.2, found)
        if bound.floor is not None:  # which whoever knows the truth can always say
            found = (min if score.better == "lower" else max)(found, bound.floor)
            room = abs(bound.floor - found)
        # what these items and votes happen to be, and the draws of few votes: two standard errors
        noise = 1.5 / np.sqrt(votes) if score.name in PROPER else 2 if votes < 10 else 1
        slack = 0.05 * room + noise / np.sqrt(ITEMS)
        assert bound.low - slack <= found <= bound.high + slack, (score.name, bound, found)
        if not bound.uncertain:
            assert abs(bound.ceiling - found) <= slack, (score.name, bound, found)


def test_floors_are_the_best_constants():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(20, dirichlet(rng, 4, sharp=True))
    votes, bounds = counts / 20, score_bounds(counts, counts, SCORES)
    for name in PROPER:
        others = rng.dirichlet(np.full(4, 2.0), 50)
        values = [
            score_values([registered()[name]], np.tile(other, (ITEMS, 1)), votes)
            for other in others
        ]
        assert bounds[name].floor < min(values)
    assert bounds["accuracy"].floor == np.bincount(votes.argmax(1)).max() / ITEMS
    assert bounds["entropy_pearson"].floor == 0
    assert bounds["ece"].floor is None
    assert bounds["ece"].skill(0.1) is None


def test_few_votes_give_an_interval_and_many_a_number():
    rng = np.random.default_rng(1)
    truth = dirichlet(rng, 10, sharp=False)
    few, many = (rng.multinomial(votes, truth) for votes in (3, 100))
    assert score_bounds(few, few, SCORES)["soft_nll"].uncertain
    assert not score_bounds(many, many, SCORES)["soft_nll"].uncertain


def test_parts_of_the_items_have_bounds_of_their_own():
    rng = np.random.default_rng(5)
    truth = dirichlet(rng, 3, sharp=True)
    counts = rng.multinomial(30, truth)
    votes, unanimous = counts / 30, (counts > 0).sum(1) == 1
    masks = {"all": np.ones(ITEMS, bool), "hlv": ~unanimous, "few": np.arange(ITEMS) < 2}
    found = part_bounds(votes, counts, masks, SCORES)
    assert list(found) == ["all", "hlv"]
    assert found["all"] == score_bounds(counts, counts, SCORES)
    constant = np.tile(votes.mean(0), (ITEMS, 1))[~unanimous]  # that of all items
    floor = every_score(constant, votes[~unanimous])["kl"]
    assert found["hlv"]["kl"].floor == pytest.approx(floor)
    for name in (*PROPER, "accuracy"):
        expected = every_score(truth[~unanimous], votes[~unanimous])[name]
        bound = found["hlv"][name]
        room = abs(bound.floor - expected)
        assert bound.ceiling == pytest.approx(expected, abs=0.05 * room + 0.01)


def test_two_halves_of_the_annotators():
    rng = np.random.default_rng(2)
    truth = dirichlet(rng, 3, sharp=True)
    counts = rng.multinomial(rng.integers(1, 40, ITEMS), truth)
    several = counts[counts.sum(1) > 1]
    sizes = several.sum(1) // 2
    halves = [rng.multivariate_hypergeometric(row, size) for row, size in zip(several, sizes)]  # noqa: B905
    half = np.array(halves)
    rest = several - half
    model = half + several.sum(0) / several.sum()
    expected = every_score(model / model.sum(1, keepdims=True), rest / rest.sum(1, keepdims=True))
    found = split_half_scores(counts, SCORES)
    assert found["kl"] == pytest.approx(expected["kl"], rel=0.05)
    assert found["soft_brier"] == pytest.approx(expected["soft_brier"], abs=0.02)
    assert found["accuracy"] == pytest.approx(expected["accuracy"], abs=0.02)
