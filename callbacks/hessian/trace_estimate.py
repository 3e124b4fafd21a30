"""The trace of a symmetric matrix from products with random vectors, each estimate with its
standard error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from scipy.special import ndtr, stdtrit
from torch import Tensor

from callbacks.hessian.lanczos import Krylov, Product

Draw = Callable[[int], Tensor]  # the n-th random vector of independent +1 and -1
FEWEST = 8  # samples before a standard error is trusted


@dataclass(frozen=True)
class Trace:
    """An estimate of a trace, and how far it is to be trusted."""

    value: float
    standard_error: float
    converged: bool  # whether the standard error met the tolerance


def hutchinson(
    product: Product, draw: Draw, tolerance: float, most: int = 200, krylov: Krylov | None = None
) -> Trace:
    """The mean of vᵀHv over random signs v, until its standard error is `tolerance` of it or `most`
    vectors are used.

    With a Krylov space this is Hutch++ (Meyer et al. 2021) with the space that Lanczos has already
    paid for as its sketch: the trace within the space is known exactly, and only what is orthogonal
    to it is sampled. A trained network's few large eigenvalues, which make plain Hutchinson noisy,
    all lie in that space.

    >>> matrix = torch.diag(torch.arange(1.0, 5.0))
    >>> hutchinson(lambda v: matrix @ v, lambda n: torch.ones(4), tolerance=0.01).value
    10.0
    """
    known = float(krylov.diagonal.sum()) if krylov else 0.0
    samples: list[float] = []
    trace = Trace(known, math.inf, False)
    for number in range(most):
        vector = draw(number)
        if krylov:
            vector = vector - (krylov.basis @ vector) @ krylov.basis
        samples.append(float(vector @ product(vector)))
        trace = _mean_of(torch.tensor(samples, dtype=torch.float64), known, tolerance)
        if trace.converged:
            break
    return trace


def xtrace(product: Product, draw: Draw, size: int, tolerance: float, most: int = 200) -> Trace:
    """XTrace (Epperly, Tropp and Webber 2024): every random vector serves the sketch of all others
    and is sampled against it.

    Spends two products per vector, and grows the sketch until the standard error is `tolerance` of
    the trace or `most` products are used.
    """
    vectors, images, basis, of_basis = (torch.empty(0) for _ in range(4))
    trace = Trace(math.nan, math.inf, False)
    while not trace.converged and len(vectors) < min(most // 2, size):
        # fewer make no sketch that holds all large eigenvalues
        count = min(max(2 * FEWEST, 3 * len(vectors) // 2), most // 2, size)
        new = torch.stack([draw(number) for number in range(len(vectors), count)])
        vectors = torch.cat([vectors.to(new), new])
        images = torch.cat([images.to(new), torch.stack([product(vector) for vector in new])])
        # the first columns do not change when others are added
        basis, upper = torch.linalg.qr(images.T)
        added = torch.stack([product(column) for column in basis.T[len(of_basis) :]])
        of_basis = torch.cat([of_basis.to(new), added])
        trace = _mean_of(_leave_one_out(vectors, basis, upper, of_basis), 0.0, tolerance)
    return trace


def _leave_one_out(vectors: Tensor, basis: Tensor, upper: Tensor, of_basis: Tensor) -> Tensor:
    """For each vector, Hutch++ with the sketch of all others: the basis without the direction that
    this vector alone has added.
    """
    upper = upper.double()
    scale = upper.diagonal().abs()
    inner = (of_basis @ basis).double()  # QᵀHQ
    if scale.min() <= torch.finfo(basis.dtype).eps * scale.max():
        # the sketch holds the matrix's whole range, so its trace is the trace
        return inner.trace().expand(len(upper))
    within = (basis.T @ vectors.T).double()  # Qᵀ of each vector, in columns
    unit = torch.eye(len(upper), dtype=torch.float64, device=upper.device)
    own = torch.linalg.solve_triangular(upper.T, unit, upper=False)
    own = own / own.norm(dim=0)
    # the part of each vector that lies in the others' sketch
    kept = within - own * (own * within).sum(0)
    sampled = (within * upper).sum(0) - 2 * (kept * upper).sum(0) + (kept * (inner @ kept)).sum(0)
    return inner.trace() - (own * (inner @ own)).sum(0) + sampled


def _mean_of(samples: Tensor, known: float, tolerance: float) -> Trace:
    value, count = known + float(samples.mean()), len(samples)
    if count < 2:
        return Trace(value, math.inf, False)
    error = float(samples.std()) / math.sqrt(count)
    # Student's t: of few samples the standard error itself is not well known
    doubt = float(stdtrit(count - 1, ndtr(1)))
    return Trace(value, error, count >= FEWEST and doubt * error <= tolerance * abs(value))
