"""The figures show what they claim: curves on the diagonal for a matching model, the printed
numbers right.
"""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from callbacks.uncertainty_figures import draw_entropies, draw_reliability
from metrics import functional

RNG = np.random.default_rng(0)
PEOPLE = torch.from_numpy(RNG.dirichlet(np.full(5, 0.5), size=4000))


def axes():
    return Figure().add_subplot()


def test_entropies_of_a_matching_model_lie_on_the_diagonal():
    panel = axes()
    draw_entropies(panel, PEOPLE, PEOPLE)
    points = panel.collections[0].get_offsets()
    np.testing.assert_allclose(points[:, 0], points[:, 1])
    means = panel.lines[1].get_xydata()
    np.testing.assert_allclose(means[:, 0], means[:, 1])
    assert "Spearman 1.00" in panel.get_legend_handles_labels()[1][0]


def test_the_reliability_curve_of_an_overconfident_model_lies_below_the_diagonal():
    labels = torch.from_numpy(np.array([RNG.choice(5, p=p / p.sum()) for p in PEOPLE.numpy()]))
    observed = torch.nn.functional.one_hot(labels, 5).double()
    overconfident = (PEOPLE**3) / (PEOPLE**3).sum(1, keepdim=True)
    gaps = []
    for probs in (PEOPLE, overconfident):
        panel = axes()
        draw_reliability(panel, probs, observed)
        curve = panel.lines[1].get_xydata()
        middle = curve[(curve[:, 0] > 0.6) & (curve[:, 0] < 0.95)]
        gaps.append((middle[:, 1] - middle[:, 0]).mean())
        ece = functional.smooth_ece(probs, observed).item()
        assert panel.get_legend_handles_labels()[1][0] == f"model, smooth ECE {ece:.3f}"
    assert gaps[0] == pytest.approx(0, abs=0.03)
    assert gaps[1] < -0.1


def test_a_model_without_any_disagreement_can_be_drawn():
    certain = torch.eye(5, dtype=torch.float64)[torch.arange(20) % 5]
    draw_entropies(axes(), certain, certain)
    draw_reliability(axes(), certain, certain)
