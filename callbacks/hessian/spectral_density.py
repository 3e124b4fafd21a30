"""The density of a symmetric matrix's eigenvalues by stochastic Lanczos quadrature; its picture."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from callbacks.hessian.lanczos import Ritz
from callbacks.uncertainty_figures import BLUE, GREY, ORANGE


def quadrature(spaces: Sequence[Ritz]) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights (which sum to 1) of the eigenvalue distribution, from one Lanczos run per
    random start vector.

    For any smooth f, `weights @ f(nodes)` estimates the mean of f over all eigenvalues; exactly for
    polynomials up to twice the steps less one, averaged over start vectors.
    """
    nodes = np.concatenate([ritz.values for ritz in spaces])
    return nodes, np.concatenate([ritz.weights for ritz in spaces]) / len(spaces)


def density(at: np.ndarray, nodes: np.ndarray, weights: np.ndarray, width: float) -> np.ndarray:
    """The distribution seen through a Gaussian of standard deviation `width`.

    >>> density(np.array([0.0]), np.array([0.0]), np.array([1.0]), width=1.0).round(4).tolist()
    [0.3989]
    """
    bumps = np.exp(-0.5 * np.square((at[:, None] - nodes) / width)) / (width * np.sqrt(2 * np.pi))
    return bumps @ weights


def draw_density(axes: Axes, nodes: np.ndarray, weights: np.ndarray, label: str) -> None:
    """Density on a logarithmic scale: the bulk near 0 and the few eigenvalues that stand apart from
    it.
    """
    low, high = nodes.min(), nodes.max()
    width = max(high - low, 1e-12) / 100
    at = np.linspace(low - 7 * width, high + 7 * width, 1000)
    curve = density(at, nodes, weights, width)
    floor = curve.max() * 1e-8
    axes.semilogy(at, np.maximum(curve, floor), color=BLUE, linewidth=1.2)
    axes.fill_between(at, floor, np.maximum(curve, floor), color=BLUE, alpha=0.2, linewidth=0)
    axes.axvline(0, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
    mark: dict[str, Any] = {"marker": "v", "markersize": 6, "linestyle": "none"}
    axes.plot([high], [floor * 3], color=ORANGE, label=f"largest {high:.3g}", **mark)
    axes.plot([low], [floor * 3], color=GREY, label=f"smallest {low:.2g}", **mark)
    axes.set(
        ylim=(floor, curve.max() * 5),
        xlabel="eigenvalue of the Hessian",
        ylabel="density (share of eigenvalues per unit)",
    )
    # nobody reads them over so many powers of ten, and they are most of the time that drawing takes
    axes.minorticks_off()
    axes.set_title(label, fontsize=9)
    axes.legend(loc="upper right", frameon=False, fontsize=8)
