"""The ends of a symmetric matrix's spectrum from products with it: by Lanczos, or by the papers'
power iteration.
"""

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from callbacks.hessian.lanczos import Krylov, Product, Ritz, lanczos


@dataclass(frozen=True)
class Ends:
    """The largest and the smallest eigenvalue *by sign*; `abs_max` is the largest by magnitude.

    A residual r means that some eigenvalue lies within r of the value; `converged` that the
    estimated error met the tolerance.
    """

    largest: float
    largest_residual: float
    smallest: float
    smallest_residual: float
    converged: bool

    @property
    def abs_max(self) -> float:
        """The largest magnitude of an eigenvalue."""
        if not math.isfinite(self.smallest):
            return abs(self.largest)
        return max(abs(self.largest), abs(self.smallest))


def ends_by_lanczos(
    product: Product, start: Tensor, tolerance: float, least: int = 1, most: int = 100
) -> tuple[Ends, Krylov]:
    """Both ends, and the Krylov space they were found in, which the trace and the density are made
    from.

    Stops when the largest eigenvalue is known to `tolerance` of itself and the smallest to
    `tolerance` of the matrix's norm (it is often nearly 0), twice in a row and not before `least`
    products: early on, an estimate may be close to an eigenvalue that is not the last.

    >>> import torch
    >>> matrix = torch.diag(torch.tensor([-9.0, 0.0, 1.0, 4.0], dtype=torch.float64))
    >>> start = torch.ones(4, dtype=torch.float64)
    >>> ends, _ = ends_by_lanczos(lambda v: matrix @ v, start, tolerance=1e-6)
    >>> round(ends.largest, 6), round(ends.smallest, 6), round(ends.abs_max, 6), ends.converged
    (4.0, -9.0, 9.0, True)
    """
    known = [False]

    def enough(ritz: Ritz) -> bool:
        known.append(_known(ritz, tolerance))
        return len(ritz.values) >= least and all(known[-2:])

    krylov = lanczos(product, start, most, enough)
    ritz = krylov.ritz()
    values = (ritz.values[-1], ritz.residuals[-1], ritz.values[0], ritz.residuals[0])
    ends = Ends(*map(float, values), converged=_known(ritz, tolerance))
    return ends, krylov


def _known(ritz: Ritz, tolerance: float) -> bool:
    norm = np.abs(ritz.values).max()
    # one value cannot know that it is not somewhere in the middle
    alone = len(ritz.values) == 1 and ritz.residuals[0] > 0
    return not alone and bool(
        ritz.errors[-1] <= tolerance * abs(ritz.values[-1]) and ritz.errors[0] <= tolerance * norm
    )


def ends_by_power_iteration(
    product: Product, start: Tensor, tolerance: float, most: int = 100
) -> Ends:
    """The papers' way.

    Power iteration finds the eigenvalue of largest *magnitude*; where that is negative, a second
    one on the shifted matrix finds the largest by sign. The smallest is reported only in that case.

    Stops when two successive estimates differ by less than `tolerance` of themselves, which says
    less than a residual does.
    """
    value, residual, converged = _power(product, start, tolerance, most)
    if value >= 0:
        return Ends(value, residual, math.nan, math.nan, converged)
    shifted, shifted_residual, too = _power(
        lambda vector: product(vector) - value * vector, start, tolerance, most
    )
    return Ends(shifted + value, shifted_residual, value, residual, converged and too)


def _power(
    product: Product, start: Tensor, tolerance: float, most: int
) -> tuple[float, float, bool]:
    vector, value, residual = start / start.norm(), math.inf, math.inf
    for _ in range(most):
        image = product(vector)
        before, value = value, float(vector @ image)
        residual = float((image - value * vector).norm())
        if abs(value - before) <= tolerance * abs(value):
            return value, residual, True
        length = image.norm()
        if length == 0:
            return 0.0, 0.0, True
        vector = image / length
    return value, residual, False
