"""Detection metrics against scikit-learn, pytorch-ood and their definitions, with and
without ties.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_ood.metrics import functional as peer
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from metrics.detection import aupr, auroc, fpr95

few_values = st.lists(st.integers(-3, 3), min_size=1, max_size=40)  # so few that almost all tie
many_values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)
pairs = st.tuples(few_values, few_values) | st.tuples(many_values, many_values)


def both(pair) -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(torch.tensor(values, dtype=torch.float64) for values in pair)  # pyright: ignore[reportReturnType]


def pooled(inside: torch.Tensor, outside: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Labels (1 for OOD) and scores."""
    return np.repeat([0, 1], [len(inside), len(outside)]), torch.cat([inside, outside]).numpy()


@settings(deadline=None)
@given(pairs)
def test_areas_are_scikit_learns(pair):
    inside, outside = both(pair)
    labels, scores = pooled(inside, outside)
    assert auroc(inside, outside).item() == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    assert aupr(inside, outside).item() == pytest.approx(
        average_precision_score(labels, scores), abs=1e-12
    )


@settings(deadline=None)
@given(pairs)
def test_auroc_and_fpr95_are_pytorch_oods(pair):
    """Its FPR has OOD as the class to be found, so for ours the roles are exchanged and the scores
    turned round.
    """
    inside, outside = both(pair)
    labels, scores = pooled(inside, outside)
    marks = torch.from_numpy(np.where(labels == 1, -1, 1))
    assert auroc(inside, outside).item() == pytest.approx(
        float(peer.auroc(torch.from_numpy(scores), marks)), abs=1e-12
    )
    assert fpr95(inside, outside).item() == pytest.approx(
        float(peer.fpr_at_tpr(torch.from_numpy(-scores), -marks, 0.95)), abs=1e-12
    )


@settings(deadline=None)
@given(pairs)
def test_fpr95_keeps_95_per_cent_of_the_data_by_the_lowest_threshold_that_does(pair):
    inside, outside = (values.numpy() for values in both(pair))
    enough = [threshold for threshold in inside if np.mean(inside <= threshold) >= 0.95]
    assert fpr95(*both(pair)).item() == pytest.approx(np.mean(outside <= min(enough)), abs=1e-12)


def test_fpr95_is_where_a_roc_curve_of_the_data_first_reaches_95_per_cent():
    generator = torch.Generator().manual_seed(0)
    inside, outside = (
        torch.randn(1000, generator=generator),
        torch.randn(700, generator=generator) + 1,
    )
    labels, scores = pooled(inside, outside)
    false, true, _ = roc_curve(1 - labels, -scores, drop_intermediate=False)
    assert fpr95(inside, outside).item() == pytest.approx(false[np.argmax(true >= 0.95)], abs=1e-12)


@settings(deadline=None)
@given(st.tuples(few_values, few_values))
def test_only_the_order_of_scores_counts(pair):
    inside, outside = both(pair)
    for metric in (auroc, aupr, fpr95):
        assert (
            metric(inside, outside).item()
            == metric(inside.exp() * 3 - 7, outside.exp() * 3 - 7).item()
        )
    assert auroc(inside, outside).item() + auroc(outside, inside).item() == pytest.approx(
        1, abs=1e-12
    )


def test_perfect_hopeless_and_chance():
    low, high = torch.arange(50.0), torch.arange(50.0) + 100
    assert (auroc(low, high).item(), aupr(low, high).item(), fpr95(low, high).item()) == (1, 1, 0)
    assert (auroc(high, low).item(), fpr95(high, low).item()) == (0, 1)
    same = torch.zeros(30)
    assert (
        auroc(same, same[:10]).item(),
        aupr(same, same[:10]).item(),
        fpr95(same, same[:10]).item(),
    ) == (0.5, 0.25, 1)
