"""Data maps against numpy and scipy: within a run, across seeds, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from core.errors import InputError
from core.randomness import generator
from metrics import every_metric, every_score
from metrics.cartography import data_map, item_values, map_across_runs, uncertainty_correlations

SEEDS, EPOCHS, ITEMS = 3, 7, 50


def records(seed: int = 0) -> np.ndarray:
    """[seeds, epochs, 3, items], in float32 as on disk."""
    rng = generator(seed, "test-cartography")
    values = rng.random((SEEDS, EPOCHS, 3, ITEMS))
    values[:, :, 2] = rng.random((SEEDS, EPOCHS, ITEMS)) < 0.6
    return values.astype(np.float32)


@pytest.mark.parametrize("last", [None, 1, 3])
@pytest.mark.parametrize("seeds", [1, SEEDS])
def test_a_map_is_mean_and_deviation_over_all_epochs_of_all_runs(last: int | None, seeds: int):
    runs = records()[:seeds]
    window = runs[:, -(last or EPOCHS) :].astype(np.float64)
    result = data_map(list(runs), last)
    rows = window.reshape(-1, 3, ITEMS)
    np.testing.assert_allclose(result.confidence, rows[:, 0].mean(0), rtol=1e-12)
    np.testing.assert_allclose(result.variability, rows[:, 0].std(0), atol=1e-12)
    np.testing.assert_allclose(result.expected_confidence, rows[:, 1].mean(0), rtol=1e-12)
    np.testing.assert_allclose(result.expected_variability, rows[:, 1].std(0), atol=1e-12)
    np.testing.assert_allclose(result.correctness, rows[:, 2].mean(0), rtol=1e-12)
    within = window[:, :, 0].var(1).mean(0)
    np.testing.assert_allclose(result.variability**2, within + result.between_runs**2, atol=1e-12)
    forgotten = [
        sum(a > b for run in window for a, b in pairwise(run[:, 2, item])) / seeds
        for item in range(ITEMS)
    ]
    assert result.forgetting_events.tolist() == pytest.approx(forgotten, abs=1e-12)
    assert max(forgotten) > 0 or last == 1


def test_a_small_variability_of_a_certain_item_is_not_lost():
    record = np.zeros((4, 3, 1))
    record[:, 0, 0] = 1 - np.array([1e-9, 2e-9, 3e-9, 4e-9])
    assert data_map([record]).variability.item() == pytest.approx(
        np.std([1e-9, 2e-9, 3e-9, 4e-9]), rel=1e-6
    )


def test_across_runs_items_are_matched_by_their_numbers():
    runs = records()
    shuffled = generator(1, "test-cartography")
    items = [np.sort(shuffled.permutation(70)[:ITEMS]) for _ in range(SEEDS)]
    common, result = map_across_runs(items, list(runs), last=5)
    assert set(common) == set.intersection(*(set(own) for own in items))
    for place, item in enumerate(common):
        values = [
            run[epoch, 0, list(own).index(item)]
            for run, own in zip(runs, items, strict=True)
            for epoch in range(2, EPOCHS)
        ]
        assert result.confidence[place] == pytest.approx(
            np.mean(values, dtype=np.float64), rel=1e-6
        )
        assert result.variability[place] == pytest.approx(
            np.std(values, dtype=np.float64), rel=1e-6
        )


def test_correlations_are_those_of_scipy():
    result = data_map([records()[0]])
    uncertainty = np.round(generator(2, "test-cartography").random(ITEMS), 1)  # with ties
    correlations = uncertainty_correlations(result, uncertainty)
    for name in ("confidence", "variability", "expected_confidence", "expected_variability"):
        assert correlations[f"{name}_spearman"] == pytest.approx(
            spearmanr(getattr(result, name), uncertainty).statistic, abs=1e-12
        )
    assert np.isnan(uncertainty_correlations(result, np.zeros(ITEMS))["confidence_spearman"])


def test_values_of_an_item_by_hand():
    probs = torch.tensor([[[0.1, 0.6, 0.3]], [[0.5, 0.2, 0.3]]])  # two models, one item
    values = item_values(probs, torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([0]))
    assert values.shape == (3, 2, 1)
    torch.testing.assert_close(
        values[:, :, 0].float(), torch.tensor([[0.1, 0.5], [0.35, 0.35], [0.0, 1.0]])
    )


@pytest.mark.parametrize(
    ("runs", "last", "message"),
    [
        ([np.zeros((3, 3, 2)), np.zeros((4, 3, 2))], None, r"runs of \[3, 4\] epochs"),
        ([np.zeros((3, 3, 2))], 5, r"a record holds 3 epoch"),
        ([np.zeros((3, 3, 2))], 0, r"last epochs of a data map is 0"),
        ([], None, r"a record holds 0 epoch"),
    ],
)
def test_what_has_no_map_is_refused(runs: list[np.ndarray], last: int | None, message: str):
    with pytest.raises(InputError, match=message):
        data_map(runs, last)


def test_runs_without_a_common_item_are_refused():
    with pytest.raises(InputError, match="no item in common"):
        map_across_runs([np.array([0]), np.array([1])], [np.zeros((1, 3, 1))] * 2)


@pytest.mark.parametrize("items", [1, 60])
def test_every_score_is_every_metric(items: int):
    rng = generator(0, "test-every-score")
    probs, annotator_probs = (
        torch.from_numpy(rng.dirichlet(np.full(4, 0.5), items)) for _ in range(2)
    )
    metrics = every_metric("")
    for batch in zip(probs.split(25), annotator_probs.split(25), strict=True):
        metrics.update(*batch)
    assert every_score(probs, annotator_probs) == pytest.approx(
        {n: float(v) for n, v in metrics.compute().items()}, rel=1e-9, abs=1e-12, nan_ok=True
    )
