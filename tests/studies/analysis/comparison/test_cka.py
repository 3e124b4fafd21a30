"""Linear CKA: its exact properties, and its definition by centred Gram matrices."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import ortho_group
from torch import Tensor

from core.errors import InputError
from studies.analysis.comparison.cka import linear_cka

RNG = np.random.default_rng(0)


def features(items: int, width: int) -> Tensor:
    return torch.from_numpy(RNG.normal(2.0, 3.0, size=(items, width))).float()


def by_gram_matrices(x: Tensor, y: Tensor) -> float:
    """HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L)), with the centring matrix written out."""
    centre = np.eye(len(x)) - 1 / len(x)
    k, m = (side.double().numpy() @ side.double().numpy().T for side in (x, y))

    def hsic(a: np.ndarray, b: np.ndarray) -> float:
        return np.trace(a @ centre @ b @ centre)

    return hsic(k, m) / math.sqrt(hsic(k, k) * hsic(m, m))


@pytest.mark.parametrize(
    ("items", "left", "right"), [(50, 4, 7), (30, 64, 64), (8, 3, 20), (2, 5, 5)]
)
def test_it_is_the_alignment_of_centred_gram_matrices(items: int, left: int, right: int):
    x, y = features(items, left), features(items, right)
    y[:, :2] += x[:, :2]  # so that there is something to find
    assert linear_cka(x, y) == pytest.approx(by_gram_matrices(x, y), abs=1e-12)


def test_of_single_features_it_is_the_squared_correlation():
    x, y = features(40, 1), features(40, 1)
    y += x
    assert linear_cka(x, y) == pytest.approx(np.corrcoef(x[:, 0], y[:, 0])[0, 1] ** 2, abs=1e-12)


def test_rotation_scale_and_shift_change_nothing_and_the_order_of_sides_neither():
    x, y = features(60, 6), features(60, 6).double()
    moved = 0.01 * y @ torch.from_numpy(ortho_group.rvs(6, random_state=1)) - 5.0
    assert linear_cka(x, moved) == pytest.approx(linear_cka(x, y), abs=1e-12)
    assert linear_cka(x, y) == pytest.approx(linear_cka(y, x), abs=1e-12)
    assert linear_cka(y, moved) == pytest.approx(1, abs=1e-12)


def test_stretching_one_direction_does_change_it():
    x = features(60, 6)
    stretched = x * torch.tensor([100.0, 1, 1, 1, 1, 1])
    assert linear_cka(x, stretched) < 0.9


def test_orthogonal_features_score_0():
    assert (
        linear_cka(
            torch.tensor([[1.0], [-1.0], [0.0], [0.0]]), torch.tensor([[0.0], [0.0], [1.0], [-1.0]])
        )
        == 0
    )


@pytest.mark.parametrize("constant", [torch.full((9, 3), 0.1), torch.zeros(9, 3)])
def test_features_without_any_spread_have_no_alignment(constant: Tensor):
    assert math.isnan(linear_cka(constant, features(9, 3)))
    assert math.isnan(linear_cka(features(9, 3), constant))


def test_features_of_different_items_are_refused():
    with pytest.raises(InputError, match="of 5 and 6 items"):
        linear_cka(features(5, 2), features(6, 2))
