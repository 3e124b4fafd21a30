"""Lanczos and power iteration against numpy's dense eigenvalues."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from callbacks.hessian.eigenvalues import ends_by_lanczos, ends_by_power_iteration
from callbacks.hessian.hessian_product import HessianProduct
from callbacks.hessian.lanczos import lanczos
from tests.callbacks.hessian.test_hessian_product import cut, dense_hessian, small_problem


def symmetric(eigenvalues: np.ndarray, seed: int) -> Tensor:
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(eigenvalues),) * 2))
    return torch.from_numpy(basis * eigenvalues @ basis.T)


def start(size: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(size))


OUTLIERS = np.concatenate([np.linspace(-0.5, 0.5, 190), [3, 4, 5, 7, 9, 12, 14, 17, 20, -30]])


def test_the_basis_stays_orthonormal_long_after_the_ends_have_converged():
    matrix = symmetric(OUTLIERS, seed=0)
    krylov = lanczos(lambda v: matrix @ v, start(200), steps=120)
    gram = krylov.basis @ krylov.basis.T
    torch.testing.assert_close(gram, torch.eye(120, dtype=torch.float64), atol=1e-12, rtol=0)
    projected = krylov.basis @ matrix @ krylov.basis.T
    tridiagonal = np.diag(krylov.diagonal) + np.diag(krylov.beside, 1) + np.diag(krylov.beside, -1)
    np.testing.assert_allclose(projected.numpy(), tridiagonal, atol=1e-10)


def test_no_eigenvalue_appears_twice():
    matrix = symmetric(OUTLIERS, seed=1).float()
    values = lanczos(lambda v: matrix @ v, start(200).float(), steps=150).ritz().values
    assert (np.abs(values - 20) < 0.1).sum() == 1
    assert (np.abs(values + 30) < 0.1).sum() == 1


@given(seed=st.integers(0, 10_000), size=st.integers(2, 30), steps=st.integers(1, 30))
def test_an_eigenvalue_lies_within_each_residual(seed: int, size: int, steps: int):
    eigenvalues = np.random.default_rng(seed).standard_normal(size) * 10
    matrix = symmetric(eigenvalues, seed)
    ritz = lanczos(lambda v: matrix @ v, start(size, seed), steps).ritz()
    nearest = np.abs(ritz.values[:, None] - eigenvalues).min(1)
    assert (nearest <= ritz.residuals + 1e-8).all()
    assert ritz.weights.sum() == pytest.approx(1)


def test_residuals_are_those_of_the_ritz_vectors():
    matrix = symmetric(OUTLIERS, seed=2)
    krylov = lanczos(lambda v: matrix @ v, start(200), steps=9)
    tridiagonal = np.diag(krylov.diagonal) + np.diag(krylov.beside, 1) + np.diag(krylov.beside, -1)
    values, vectors = np.linalg.eigh(tridiagonal)
    ritz_vectors = krylov.basis.T.numpy() @ vectors
    residuals = np.linalg.norm(matrix.numpy() @ ritz_vectors - ritz_vectors * values, axis=0)
    np.testing.assert_allclose(krylov.ritz().residuals, residuals, atol=1e-10)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("seed", range(5))
def test_ends_are_found_to_the_tolerance(seed: int, tolerance: float):
    matrix = symmetric(OUTLIERS, seed)
    spent = []
    ends, krylov = ends_by_lanczos(
        lambda v: spent.append(1) or matrix @ v, start(200, seed), tolerance
    )
    assert ends.converged
    assert ends.largest == pytest.approx(20, rel=tolerance)
    assert ends.smallest == pytest.approx(-30, abs=30 * tolerance)
    assert ends.abs_max == -ends.smallest
    assert len(spent) == len(krylov.diagonal) < 60


def test_fewer_products_for_a_looser_tolerance_and_never_fewer_than_asked():
    matrix = symmetric(OUTLIERS, seed=3)
    steps = [
        len(ends_by_lanczos(lambda v: matrix @ v, start(200), tolerance)[1].diagonal)
        for tolerance in (1e-1, 1e-3, 1e-6)
    ]
    assert steps == sorted(set(steps))
    assert len(ends_by_lanczos(lambda v: matrix @ v, start(200), 1e-1, least=40)[1].diagonal) == 40


def test_a_tolerance_that_is_not_reached_is_marked():
    matrix = symmetric(np.linspace(-1, 1, 300), seed=0)
    ends, _ = ends_by_lanczos(lambda v: matrix @ v, start(300), 1e-9, most=5)
    assert not ends.converged
    assert ends.largest_residual > 1e-3


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_a_matrix_of_low_rank_is_exhausted_early(rank: int):
    matrix = symmetric(np.concatenate([np.arange(1.0, rank + 1), np.zeros(50 - rank)]), seed=4)
    ends, krylov = ends_by_lanczos(lambda v: matrix @ v, start(50), 1e-6, least=20)
    assert len(krylov.diagonal) <= rank + 1
    assert ends.largest == pytest.approx(rank, abs=1e-9)
    assert ends.converged


def test_largest_smallest_and_magnitude_on_a_net_with_a_negative_dominant_eigenvalue():
    network, inputs, annotator_probs = small_problem()
    dense = torch.linalg.eigvalsh(dense_hessian(network, inputs, annotator_probs))
    assert -dense[0] > dense[-1] > 0
    ends, _ = ends_by_lanczos(
        HessianProduct(network, cut(inputs, annotator_probs, 3)), start(31), 1e-8
    )
    assert ends.largest == pytest.approx(float(dense[-1]), rel=1e-7)
    assert ends.smallest == pytest.approx(float(dense[0]), rel=1e-7)
    assert ends.abs_max == pytest.approx(-float(dense[0]), rel=1e-7)


@pytest.mark.parametrize("sign", [1, -1])
def test_power_iteration_ends_at_the_largest_by_sign(sign: int):
    matrix = sign * symmetric(OUTLIERS, seed=5)  # of largest magnitude: -30, or 30
    ends = ends_by_power_iteration(lambda v: matrix @ v, start(200), 1e-7, most=2000)
    assert ends.converged
    assert ends.largest == pytest.approx(20 if sign == 1 else 30, rel=1e-4)
    assert ends.abs_max == pytest.approx(30, rel=1e-4)
    assert math.isnan(ends.smallest) == (sign == -1)


def test_power_iteration_says_when_it_gave_up():
    matrix = symmetric(OUTLIERS, seed=5)
    assert not ends_by_power_iteration(lambda v: matrix @ v, start(200), 1e-12, most=3).converged


def test_power_iteration_on_nothing():
    ends = ends_by_power_iteration(torch.zeros_like, start(5), 1e-3)
    assert (ends.largest, ends.converged) == (0, True)
