"""Lanczos with full reorthogonalisation: a small tridiagonal matrix that knows the ends of a large
symmetric one's spectrum.

It is written here because peers lose accuracy or time: curvlinops does not reorthogonalise and
copies to the CPU at every step, and PyHessian finds the largest magnitude, not the largest value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import eigh_tridiagonal
from torch import Tensor

Product = Callable[[Tensor], Tensor]
ROOM = 16  # basis vectors for which memory is set aside at first; doubled when it is used up


class Ritz(NamedTuple):
    """Approximate eigenvalues in rising order, with the norm of each one's residual: an eigenvalue
    lies within it.
    """

    values: np.ndarray
    residuals: np.ndarray
    weights: np.ndarray  # squared first components: quadrature weights of the start vector

    @property
    def errors(self) -> np.ndarray:
        """What each value is off by, from its residual r and the gap to its neighbours.

        It is min(r, r^2 / gap), far below r once a value stands apart (the Kato-Temple bound, with
        the neighbours' places estimated by the Ritz values).
        """
        if len(self.values) == 1:
            return self.residuals
        steps = np.diff(self.values) - np.maximum(self.residuals[1:], self.residuals[:-1])
        gaps = np.minimum(np.append(steps, np.inf), np.insert(steps, 0, np.inf))
        wider = np.maximum(np.maximum(gaps, self.residuals), np.finfo(float).tiny)
        return np.square(self.residuals) / wider


@dataclass
class Krylov:
    """What Lanczos leaves: an orthonormal basis (rows) in which the matrix is tridiagonal, but for
    `rest` beyond its last row.
    """

    basis: Tensor  # [steps, size]
    diagonal: np.ndarray
    beside: np.ndarray
    rest: float

    def ritz(self) -> Ritz:
        """The approximate eigenvalues that the space holds."""
        values, vectors = eigh_tridiagonal(self.diagonal, self.beside)
        return Ritz(values, self.rest * np.abs(vectors[-1]), np.square(vectors[0]))


def lanczos(
    product: Product, start: Tensor, steps: int, enough: Callable[[Ritz], bool] = lambda ritz: False
) -> Krylov:
    """Up to `steps` products from a start vector; fewer when `enough` says so or when the matrix
    has no more to show.

    Every new vector is orthogonalised against all earlier ones, twice: without that, eigenvalues
    found early would appear again and again.

    >>> matrix = torch.diag(torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64))
    >>> start = torch.ones(3, dtype=torch.float64)
    >>> lanczos(lambda v: matrix @ v, start, steps=10).ritz().values.round(6).tolist()
    [1.0, 2.0, 5.0]
    """
    steps = min(steps, len(start))
    basis = start.new_empty(min(steps, ROOM), len(start))
    diagonal, beside = [], []
    direction, length = start, float(start.norm())
    krylov = Krylov(basis[:0], np.empty(0), np.empty(0), length)
    for step in range(steps):
        if step == len(basis):
            basis = torch.cat([basis, basis.new_empty(min(step, steps - step), len(start))])
        basis[step] = direction / length
        known = basis[: step + 1]
        direction = product(known[step])
        diagonal.append(float(known[step] @ direction))
        for _ in range(2):
            direction = direction - (known @ direction) @ known
        length = float(direction.norm())
        krylov = Krylov(known, np.array(diagonal), np.array(beside), length)
        size = np.abs(diagonal).max() + max(beside, default=0.0)
        if length <= 100 * torch.finfo(start.dtype).eps * size or enough(krylov.ritz()):
            break
        beside.append(length)
    return krylov
