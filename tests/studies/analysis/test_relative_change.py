"""Relative changes against scipy's bootstrap, and where a change in percent has no meaning."""

import numpy as np
import pytest
from scipy import stats

from core.errors import InputError
from studies.analysis.relative_change import relative_change


def pairs(seed: int, n: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    reference = rng.normal(0.5, 0.05, n)
    return reference * rng.gamma(8, 0.1, n), reference


def test_one_group_is_the_ratio_of_means_with_scipys_interval():
    a, b = pairs(0)
    result = relative_change([(a, b)], resamples=50_000)
    wanted = stats.bootstrap(
        (a, b),
        lambda x, y, axis: 100 * (x.mean(axis) / y.mean(axis) - 1),
        paired=True,
        vectorized=True,
        n_resamples=50_000,
        rng=1,
    ).confidence_interval
    assert result.percent == pytest.approx(100 * (a.mean() / b.mean() - 1))
    assert (result.low, result.high) == pytest.approx(
        (wanted.low, wanted.high), abs=0.02 * (wanted.high - wanted.low)
    )


def test_the_average_over_groups_draws_seeds_within_each():
    (a, _), (c, _) = pairs(1), pairs(2, 7)
    result = relative_change([(a, np.full(10, 0.4)), (c, np.full(7, 0.2))], resamples=50_000)
    wanted = stats.bootstrap(
        (a, c),
        lambda x, y, axis: 100 * ((x.mean(axis) / 0.4 + y.mean(axis) / 0.2) / 2 - 1),
        vectorized=True,
        n_resamples=50_000,
        rng=1,
    ).confidence_interval
    assert result.percent == pytest.approx(100 * ((a.mean() / 0.4 + c.mean() / 0.2) / 2 - 1))
    assert (result.low, result.high) == pytest.approx(
        (wanted.low, wanted.high), abs=0.03 * (wanted.high - wanted.low)
    )


def test_pairs_matter():
    _, b = pairs(3)
    together, apart = relative_change([(0.8 * b, b)]), relative_change([(0.8 * b[::-1], b)])
    assert (together.percent, together.low, together.high) == pytest.approx((-20, -20, -20))
    assert apart.percent == pytest.approx(-20)
    assert apart.high - apart.low > 1


def test_no_change_where_the_reference_is_not_above_zero():
    result = relative_change([(np.array([0.2, 0.3]), np.array([-0.1, 0.05]))])
    assert np.isnan(result).all()
    # a resample of the first alone is negative
    sometimes = relative_change([(np.full(3, 0.2), np.array([-0.1, 0.2, 0.3]))])
    assert sometimes.percent == pytest.approx(50)
    assert np.isnan([sometimes.low, sometimes.high]).all()


def test_one_seed_has_no_interval_and_none_is_refused():
    result = relative_change([(np.array([3.0]), np.array([2.0]))])
    assert result.percent == pytest.approx(50)
    assert np.isnan(result.low)
    with pytest.raises(InputError, match="at least one pair"):
        relative_change([(np.array([]), np.array([]))])
