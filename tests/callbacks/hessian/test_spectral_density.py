"""Stochastic Lanczos quadrature against the whole spectrum."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from callbacks.hessian.lanczos import lanczos
from callbacks.hessian.spectral_density import density, draw_density, quadrature
from tests.callbacks.hessian.test_eigenvalues import start, symmetric

EIGENVALUES = np.concatenate([np.linspace(-1, 1, 380), np.linspace(3, 6, 20)])


def nodes_and_weights(starts: int, steps: int = 25):
    matrix = symmetric(EIGENVALUES, seed=0)
    return quadrature(
        [lanczos(lambda v: matrix @ v, start(400, seed), steps).ritz() for seed in range(starts)]
    )


def test_means_of_smooth_functions_over_all_eigenvalues():
    nodes, weights = nodes_and_weights(starts=40)
    assert weights.sum() == pytest.approx(1)
    for function in (np.ones_like, np.square, np.exp, np.tanh):
        values = function(EIGENVALUES)
        # of random start vectors
        standard_error = np.sqrt(2 * np.square(values - values.mean()).mean() / 400 / 40)
        assert weights @ function(nodes) == pytest.approx(
            values.mean(), abs=4 * standard_error + 1e-9
        )


def test_the_density_is_one_in_sum_and_that_of_the_eigenvalues():
    nodes, weights = nodes_and_weights(starts=40)
    at = np.linspace(-4, 9, 2000)
    curve = density(at, nodes, weights, width=0.3)
    true = density(at, EIGENVALUES, np.full(400, 1 / 400), width=0.3)
    assert np.trapezoid(curve, at) == pytest.approx(1, abs=1e-3)
    assert np.trapezoid(np.abs(curve - true), at) < 0.1


def test_the_picture_says_where_the_ends_are():
    axes = Figure().add_subplot()
    nodes, weights = nodes_and_weights(starts=1)
    draw_density(axes, nodes, weights, "all")
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["largest 6", "smallest -0.99"]
