"""Intervals against what theory says of the same data."""

import numpy as np
import pytest
import torch
from scipy import stats

from metrics import functional, per_item
from metrics.registry import registered
from studies.scoring import resampling
from studies.scoring.resampling import Spread, spreads
from tests.studies.scoring.files import some_probs

SCORES = registered()
ITEMS = 900


@pytest.fixture(scope="module")
def people() -> np.ndarray:
    return some_probs(ITEMS, 4, seed=1)


@pytest.fixture(scope="module")
def model(people: np.ndarray) -> np.ndarray:
    return 0.6 * people + 0.4 * some_probs(ITEMS, 4, seed=2)


def test_the_interval_of_a_mean_is_that_of_its_standard_error(
    model: np.ndarray, people: np.ndarray
):
    tensors = torch.from_numpy(model), torch.from_numpy(people)
    (found,) = spreads([(model, [SCORES["kl"], SCORES["accuracy"]])], people, seed=0)
    for name, items in (("kl", per_item.kl(*tensors)), ("accuracy", per_item.hit(*tensors))):
        mean, error = items.mean().item(), items.std().item() / ITEMS**0.5
        low, high = found[name].interval(mean)
        assert low == pytest.approx(mean - 1.96 * error, abs=0.25 * error)
        assert high == pytest.approx(mean + 1.96 * error, abs=0.25 * error)
        assert found[name].values.std() == pytest.approx(error, rel=0.08)


def test_the_interval_of_a_correlation_is_near_that_of_theory(
    model: np.ndarray, people: np.ndarray, monkeypatch: pytest.MonkeyPatch
):
    entropies = [functional.entropy(table).numpy() for table in (model, people)]
    known = stats.pearsonr(*entropies)
    expected = stats.bootstrap(
        entropies,
        lambda x, y: stats.pearsonr(x, y).statistic,
        paired=True,
        vectorized=False,
        n_resamples=400,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    monkeypatch.setattr(resampling, "OTHERS", 150)
    (found,) = spreads([(model, [SCORES["entropy_pearson"]])], people, seed=0)
    low, high = found["entropy_pearson"].interval(known.statistic)
    assert high - low == pytest.approx(expected.high - expected.low, rel=0.25)
    assert low < known.statistic < high


def test_fewer_items_in_a_resample_give_the_same_spread(
    model: np.ndarray, people: np.ndarray, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(resampling, "OTHERS", 300)
    score = [SCORES["entropy_spearman"]]
    (whole,) = spreads([(model, score)], people, seed=0)
    monkeypatch.setattr(resampling, "AT_MOST", 200)
    (part,) = spreads([(model, score)], people, seed=0)
    sizes = [
        spread["entropy_spearman"].scale * spread["entropy_spearman"].values.std()
        for spread in (whole, part)
    ]
    assert whole["entropy_spearman"].scale == 1
    assert part["entropy_spearman"].scale == pytest.approx((200 / ITEMS) ** 0.5)
    assert sizes[1] == pytest.approx(sizes[0], rel=0.2)


def test_tables_are_resampled_alike(model: np.ndarray, people: np.ndarray):
    """So a table differs from itself by nothing, and from a shifted one by a constant."""
    scores = [SCORES["soft_brier"], SCORES["ece"]]
    one, two = spreads([(model, scores), (model.copy(), scores)], people, seed=5)
    for name in one:
        np.testing.assert_array_equal(one[name].values, two[name].values)
    (alone,) = spreads([(model, scores[:1])], people, seed=5)
    np.testing.assert_allclose(alone["soft_brier"].values, one["soft_brier"].values)


def test_p_values_of_paired_differences_are_those_of_a_t_test(
    model: np.ndarray, people: np.ndarray
):
    other = 0.97 * model + 0.03 * some_probs(ITEMS, 4, seed=9)
    tables = [torch.from_numpy(table) for table in (model, other)]
    items = [per_item.brier(table, torch.from_numpy(people)).numpy() for table in tables]
    brier = [SCORES["soft_brier"]]
    one, two = spreads([(model, brier), (other, brier)], people, seed=0)
    apart = Spread(one["soft_brier"].values - two["soft_brier"].values, 1.0)
    found, known = items[0].mean() - items[1].mean(), stats.ttest_rel(*items)
    assert stats.norm.isf(apart.p_value(found) / 2) == pytest.approx(abs(known.statistic), rel=0.1)
    assert Spread(np.zeros(9), 1.0).p_value(0.0) == 1
    assert Spread(np.zeros(9), 1.0).p_value(0.1) == 0
