"""How far predictions move between epochs: the mean of each stratum, against scipy."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from metrics.drift import prediction_drift


def test_each_stratum_has_the_mean_of_its_own_items():
    rng = np.random.default_rng(0)
    before, now = (rng.dirichlet(np.full(4, 0.3), 50) for _ in range(2))
    chosen = rng.random(50) < 0.3
    drift = prediction_drift(
        torch.from_numpy(before),
        torch.from_numpy(now),
        {"all": torch.ones(50, dtype=torch.bool), "some": torch.from_numpy(chosen)},
    )
    reference = jensenshannon(before, now, axis=1) ** 2
    assert drift == pytest.approx(
        {"all": reference.mean(), "some": reference[chosen].mean()}, rel=1e-12
    )


def test_a_stratum_without_items_is_left_out():
    probs = torch.full((3, 2), 0.5)
    assert prediction_drift(
        probs,
        probs,
        {"none": torch.zeros(3, dtype=torch.bool), "all": torch.ones(3, dtype=torch.bool)},
    ) == {"all": 0.0}
