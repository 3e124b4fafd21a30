"""Means over seeds, items and votes, against scipy, statsmodels and the analysis of variance."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from studies.analysis.uncertainty.estimate import Estimate, estimate
from studies.analysis.uncertainty.needed import needed
from studies.analysis.uncertainty.spread import Spread, sum_of


def crossed(table: np.ndarray) -> Spread:
    """The spread of the seeds' means of a table [seeds, items], every item a group of its own."""
    parts = (table - table.mean(1, keepdims=True)) / table.shape[1]
    return Spread(parts, None, table.shape[1], math.nan)


def some_table(seeds: int, items: int, number: int = 0) -> np.ndarray:
    rng = np.random.default_rng(number)
    return (
        rng.normal(0, 0.3, (seeds, 1))
        + rng.normal(0, 1.0, (1, items))
        + rng.normal(0, 0.5, (seeds, items))
    )


@pytest.mark.parametrize("number", range(4))
def test_seeds_alone_are_the_t_test_of_scipy(number: int):
    values = np.random.default_rng(number).normal(0.5, 1, 3 + 3 * number)
    found = estimate(values)
    assert found.interval() == pytest.approx(
        stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    )
    for side in ("less", "greater", "two-sided"):
        expected = stats.ttest_1samp(values, 0.2, alternative=side).pvalue
        assert found.p(side, 0.2) == pytest.approx(expected)
    assert (found.over, found.items) == ("over seeds alone", 0)
    assert found.alone


@pytest.mark.parametrize("number", range(4))
def test_the_variance_is_that_of_a_two_way_analysis(number: int):
    """Of seeds crossed with items: (MS seeds + MS items - MS rest) / (seeds x items)."""
    table = some_table(4 + number, 60, number)
    seeds, items = table.shape
    of_seed, of_item = table.mean(1, keepdims=True), table.mean(0, keepdims=True)
    rest = table - of_seed - of_item + table.mean()
    squares = (
        items * of_seed.var(ddof=1),
        seeds * of_item.var(ddof=1),
        (rest**2).sum() / ((seeds - 1) * (items - 1)),
    )
    found = estimate(table.mean(1), crossed(table))
    expected = (squares[0] + squares[1] - squares[2]) / (seeds * items)
    assert found.variance == pytest.approx(expected)
    assert found.crossed == pytest.approx(squares[2] / (seeds * items))
    assert found.over == "over seeds, items and votes"
    assert found.degrees > seeds - 1
    assert found.variance > estimate(table.mean(1)).variance


def test_what_seeds_share_widens_an_interval_that_seeds_alone_make_too_short():
    rng = np.random.default_rng(0)
    table = rng.normal(0, 1, (1, 500)) + rng.normal(0, 0.01, (5, 500))  # all seeds say the same
    alone, whole = estimate(table.mean(1)), estimate(table.mean(1), crossed(table))
    low, high = whole.interval()
    assert high - low == pytest.approx(2 * 1.96 / math.sqrt(500), rel=0.15)
    assert alone.interval()[1] - alone.interval()[0] < 0.1 * (high - low)


def test_one_seed_has_no_interval_and_no_spread_is_a_point():
    one = estimate([1.0])
    assert all(map(math.isnan, (*one.interval(), one.p("less"))))
    same = estimate([1.0, 1.0, 1.0])
    assert same.interval() == (1.0, 1.0)
    assert (same.p("greater"), same.p("less"), same.p("greater", 1.0)) == (0.0, 1.0, 1.0)


def test_the_sum_of_two_numbers_has_the_spread_of_the_sum():
    one, other = some_table(5, 200, 1), some_table(5, 200, 2)
    together = estimate(
        (one + 2 * other).mean(1), sum_of([crossed(one), crossed(other).scaled(2.0)])
    )
    expected = estimate((one + 2 * other).mean(1), crossed(one + 2 * other))
    assert together.variance == pytest.approx(expected.variance)


@pytest.mark.parametrize("effect", [0.3, 0.6, 1.0])
def test_the_seeds_that_it_takes_are_those_of_statsmodels(effect: float):
    """Ours takes two quantiles of t, statsmodels the noncentral t: one seed apart at most."""
    found = Estimate(effect, seeds=10, between=1 / 10)
    expected = TTestPower().solve_power(effect_size=effect, power=0.8, alpha=0.05)
    assert abs(needed(found).seeds - math.ceil(expected)) <= 1
    assert math.isnan(needed(found).items)
    assert math.isnan(needed(found).votes)


def test_what_items_do_is_not_averaged_away_by_seeds_nor_what_seeds_do_by_items():
    of_items = Estimate(
        0.1, seeds=5, between=1e-8, shared=0.01, items=100, votes_per_item=10.0,
        votes_shared=0.005, votes_crossed=0.0,
    )  # fmt: skip
    wanted = needed(of_items)
    assert wanted.seeds == math.inf
    # two quantiles of the normal distribution: (1.96 + 0.84)² times the variance of 100 items
    assert wanted.items == pytest.approx((1.96 + 0.8416) ** 2 * 100, rel=0.01)
    assert wanted.votes == math.inf  # half of the variance is the items' own
    assert "more seeds or votes alone would not do" in wanted.in_words()
    of_votes = Estimate(
        0.1, seeds=5, between=1e-8, shared=0.01, items=100, votes_per_item=10.0,
        votes_shared=0.0099, votes_crossed=0.0,
    )  # fmt: skip
    # 0.0001 + 0.0099 * 10 / votes = (0.1 / 2.80)²
    assert needed(of_votes).votes == pytest.approx(0.099 / (0.01 / 7.849 - 0.0001), rel=0.02)
    of_seeds = Estimate(0.1, seeds=5, between=0.01, items=100)
    assert needed(of_seeds).items == math.inf
    assert math.isnan(needed(of_seeds).votes)


def test_no_difference_is_never_seen_and_one_pair_says_nothing():
    assert needed(Estimate(0.0, seeds=5, between=0.1)).seeds == math.inf
    assert math.isnan(needed(estimate([1.0])).seeds)
    assert needed(estimate([1.0])).in_words() == ""
