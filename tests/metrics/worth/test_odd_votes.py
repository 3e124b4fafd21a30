"""Tables on which little or nothing can be said: numbers or None, never a NaN."""

import math

import numpy as np
import pytest

from core.errors import InputError
from metrics import registered
from metrics.worth import Bounds, score_bounds, score_floors, spendings, split_half_scores
from tests.metrics.worth.made_truths import SCORES

TABLES = {
    "a vote each": np.array([[1, 0], [0, 1], [1, 0], [1, 0]]),
    "a class without votes": np.array([[5, 0, 0], [3, 2, 0], [0, 5, 0], [4, 1, 0]]),
    "all agree": np.array([[5, 0]] * 4),
    "all alike": np.array([[5, 5]] * 4),
    "millions of votes": np.array([[2_000_000_000, 0], [1_000_000, 3], [7, 900_000_000]]),
    "three items": np.array([[2, 1], [1, 2], [3, 0]]),
    "one and many votes": np.array([[1, 0, 0], [400, 300, 2], [0, 1, 0], [0, 0, 90]], np.int32),
    "more classes than items": np.eye(200, dtype=int)[:20] * 3,
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_odd_tables_give_numbers_or_none(table: np.ndarray):
    for name, bound in score_bounds(table, table, SCORES).items():
        ends = (bound.ceiling, bound.low, bound.high)
        if bound.ceiling is None:
            assert ends == (None, None, None)
            assert name in ("entropy_spearman", "entropy_pearson", "disagreement_auroc")
        else:
            assert np.isfinite(ends).all()
            assert bound.low <= bound.ceiling <= bound.high
        assert bound.floor is None or math.isfinite(bound.floor)
        for score in (0.3, math.nan, math.inf):
            skill = bound.skill(score)
            assert skill is None or math.isfinite(skill)
    for way in spendings(table, votes=(1, 5)):
        assert way.error is None or math.isfinite(way.error)
        assert all(bound.floor is not None for bound in way.bounds.values())


@pytest.mark.parametrize("function", [split_half_scores, spendings, lambda c: score_bounds(c, c)])
def test_too_few_items_are_told_in_a_sentence(function):
    with pytest.raises(InputError, match=r"2 items have .* fewer than 3\."):
        function(np.array([[2, 1], [3, 0]]))


def test_halves_leave_out_what_is_not_defined():
    assert "entropy_pearson" not in split_half_scores(np.array([[4, 0], [0, 4], [4, 0]]))


def test_a_class_without_training_votes_leaves_the_floor_finite():
    train = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    test = np.array([[0.5, 0.0, 0.5]])
    floors = score_floors(train, test, list(registered().values()))
    shares = np.array([0.75, 0.25, 0.25]) / 1.25  # half an item of two is a quarter
    assert floors["soft_nll"] == pytest.approx(-(test * np.log(shares)).sum())
    shares = np.array([1, 0.25, 0.25]) / 1.5  # of majorities
    assert floors["hard_nll"] == pytest.approx(-np.log(shares[0]))
    seen = score_floors(train[:, :2], test[:, :1] * [[1, 1]], list(registered().values()))
    assert seen["soft_nll"] == pytest.approx(-np.log([0.75, 0.25]).mean())  # the mean as it is


def test_no_skill_is_told_where_the_ceiling_may_be_at_the_floor():
    assert Bounds(floor=0.4, ceiling=0.3, low=0.1, high=0.4).skill(0.35) is None
    assert Bounds(floor=0.4, ceiling=0.3, low=0.1, high=0.39).skill(0.35) == pytest.approx(0.5)
    assert Bounds(floor=0.4).skill(0.35) is None
    assert not Bounds(floor=0.4).uncertain
    counts = np.random.default_rng(0).multinomial(20, [0.2, 0.3, 0.5], 2000)  # nothing to learn
    bounds = score_bounds(counts, counts, SCORES)
    assert bounds["soft_nll"].skill(0.5) is None or bounds["soft_nll"].uncertain
    assert bounds["soft_nll"].ceiling <= bounds["soft_nll"].floor
