"""Trace estimators: unbiased, with honest standard errors, and exact where the matrix allows it."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from callbacks.hessian.lanczos import lanczos
from callbacks.hessian.trace_estimate import Trace, _leave_one_out, hutchinson, xtrace
from core.randomness import generator
from tests.callbacks.hessian.test_eigenvalues import start, symmetric

EIGENVALUES = np.concatenate([np.linspace(0, 0.4, 290), [20, 18, 15, 13, 12, 11, 9, 8, 7, -3]])
MATRIX = symmetric(EIGENVALUES, seed=0)
TRUE = float(EIGENVALUES.sum())


def draws(seed: int, size: int = 300) -> Callable[[int], Tensor]:
    return lambda number: torch.from_numpy(
        generator(seed, "test", number).choice([-1.0, 1.0], size=size)
    )


def plain(seed: int, tolerance: float = 0.05, most: int = 1000) -> Trace:
    return hutchinson(lambda v: MATRIX @ v, draws(seed), tolerance, most)


def deflated(seed: int, tolerance: float = 0.01, most: int = 1000) -> Trace:
    krylov = lanczos(lambda v: MATRIX @ v, start(300, seed), steps=20)
    return hutchinson(lambda v: MATRIX @ v, draws(seed), tolerance, most, krylov)


def by_xtrace(seed: int, tolerance: float = 0.01, most: int = 1000) -> Trace:
    return xtrace(lambda v: MATRIX @ v, draws(seed), 300, tolerance, most)


@pytest.mark.parametrize(
    ("estimate", "tolerance"), [(plain, 0.05), (deflated, 0.01), (by_xtrace, 0.01)]
)
def test_errors_are_what_the_standard_error_says(
    estimate: Callable[[int], Trace], tolerance: float
):
    traces = [estimate(seed) for seed in range(40)]
    assert all(
        trace.converged and trace.standard_error <= tolerance * trace.value for trace in traces
    )
    scaled = np.array([(trace.value - TRUE) / trace.standard_error for trace in traces])
    assert abs(scaled.mean()) < 3 * 1.3 / np.sqrt(40)
    assert 0.7 < np.sqrt(np.mean(scaled**2)) < 1.5


def test_deflation_takes_the_large_eigenvalues_out_of_the_noise():
    few = {
        estimate.__name__: estimate(0, 1e-9, 20).standard_error for estimate in (plain, deflated)
    }
    assert few["deflated"] < few["plain"] / 8


def test_xtrace_is_the_mean_of_hutchpp_without_each_vector_in_turn():
    count = 6
    vectors = torch.stack([draws(3)(n) for n in range(count)])
    basis, upper = torch.linalg.qr((vectors @ MATRIX).T)
    estimates = _leave_one_out(vectors, basis, upper, (MATRIX @ basis).T)
    for left_out in range(count):
        others = [n for n in range(count) if n != left_out]
        q, _ = torch.linalg.qr((vectors[others] @ MATRIX).T)
        rest = vectors[left_out] - q @ (q.T @ vectors[left_out])
        torch.testing.assert_close(
            estimates[left_out], (q.T @ MATRIX @ q).trace() + rest @ MATRIX @ rest
        )


@pytest.mark.parametrize("method", ["hutchinson", "xtrace"])
@pytest.mark.parametrize("most", [3, 10, 37])
def test_no_more_products_than_allowed_and_marked_where_that_is_too_few(method: str, most: int):
    spent = []

    def product(vector: Tensor) -> Tensor:
        spent.append(1)
        return MATRIX @ vector

    trace = (
        hutchinson(product, draws(0), 1e-9, most)
        if method == "hutchinson"
        else xtrace(product, draws(0), 300, 1e-9, most)
    )
    assert len(spent) <= most
    assert not trace.converged


@pytest.mark.parametrize("rank", [0, 1, 4])
def test_xtrace_is_exact_on_a_matrix_of_low_rank(rank: int):
    matrix = symmetric(np.concatenate([np.arange(1.0, rank + 1), np.zeros(40 - rank)]), seed=1)
    trace = xtrace(lambda v: matrix @ v, draws(0, 40), 40, 0.01)
    assert trace.value == pytest.approx(rank * (rank + 1) / 2, abs=1e-9)


def test_a_space_that_holds_everything_leaves_nothing_to_sample():
    matrix = symmetric(np.arange(1.0, 11), seed=2)
    krylov = lanczos(lambda v: matrix @ v, start(10), steps=10)
    trace = hutchinson(lambda v: matrix @ v, draws(0, 10), 0.01, krylov=krylov)
    assert trace.value == pytest.approx(55)
    assert trace.standard_error < 1e-9
