"""The peers of hessian.py, PyHessian and curvlinops with scipy, each with the loosest settings that
reach the accuracy asked for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from curvlinops import HessianLinearOperator, hutchpp_trace, xtrace
from pyhessian import hessian as PyHessian
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor, nn

from benchmarks.measure import best_of
from lightning_modules.networks import Network

EIGENVALUE, TRACE = 0.01, 0.02  # relative errors: the worst over seeds, and the root mean square
TOLERANCES = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
VECTORS = (6, 10, 20)  # of eigsh's basis; its own choice is 20
PRODUCTS = (12, 18, 24, 30, 36, 48, 60, 90, 120)
SAMPLES = 40
Batches = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Truth:
    """What the methods must come near to."""

    eigenvalue: float
    trace: float

    def finds(self, value: Callable[[int], float], seeds: range) -> bool:
        """Whether the eigenvalue is near enough for every seed."""
        return all(abs(value(seed) / self.eigenvalue - 1) <= EIGENVALUE for seed in seeds)

    def error(self, trace: Callable[[int], float], seeds: range) -> float:
        """The trace's error, root mean square over seeds."""
        return float(np.sqrt(np.mean([(trace(seed) / self.trace - 1) ** 2 for seed in seeds])))


@dataclass(frozen=True)
class Peer:
    """The work of a peer that reached the accuracy: its eigenvalue, and its trace, which counts
    `repeats` times where only a part of it is done.
    """

    eigenvalue: Callable[[], object]
    trace: Callable[[], object]
    repeats: float
    note: str


def pyhessian(network: Network, batches: Batches, truth: Truth, seeds: range) -> Peer:
    """Power iteration and Hutchinson's trace, whose samples are as many as bring its standard error
    to the accuracy; a part of them is timed.

    One batch is given to it as such, so that it, too, keeps the gradient's graph.
    """

    def start(seed: int):
        torch.manual_seed(seed)
        where = {"data": batches[0]} if len(batches) == 1 else {"dataloader": batches}
        return PyHessian(network, nn.CrossEntropyLoss(), cuda=False, **where)

    def eigenvalue(seed: int, tolerance: float) -> float:
        return start(seed).eigenvalues(maxIter=500, tol=tolerance)[0][0]

    tolerance = next(
        (t for t in TOLERANCES if truth.finds(partial(eigenvalue, tolerance=t), seeds)),
        TOLERANCES[-1],
    )
    samples = np.array(start(0).trace(maxIter=SAMPLES, tol=0.0))
    needed = max(1, math.ceil((samples.std() / truth.trace / TRACE) ** 2))
    timed = min(needed, 10)
    return Peer(
        lambda: eigenvalue(0, tolerance),
        lambda: start(0).trace(maxIter=timed, tol=0.0),
        needed / timed,
        f"trace by {needed} products",
    )


def curvlinops(network: Network, batches: Batches, truth: Truth, seeds: range) -> Peer:
    """Eigenvalue by scipy's eigsh with the best number of vectors; trace by Hutch++ or XTrace,
    whichever is faster with as many products as it needs.
    """
    operator = HessianLinearOperator(
        network,
        nn.CrossEntropyLoss(),
        list(network.parameters()),
        batches,
        check_deterministic=False,
    )
    size = operator.shape[0]

    def multiply(vector: np.ndarray) -> np.ndarray:
        product: Any = operator @ torch.from_numpy(vector.ravel())
        return product.numpy()

    scipy_form = LinearOperator(
        operator.shape,
        matvec=multiply,  # pyright: ignore[reportCallIssue]
        dtype=np.float32,  # pyright: ignore[reportCallIssue]
    )

    def eigenvalue(seed: int, vectors: int) -> float:
        first = np.random.default_rng(seed).standard_normal(size, dtype=np.float32)
        options: dict[str, Any] = {"tol": EIGENVALUE, "v0": first, "return_eigenvectors": False}
        return float(eigsh(scipy_form, k=1, which="LA", ncv=vectors, **options)[0])

    def trace(seed: int, method: Callable, products: int) -> float:
        torch.manual_seed(seed)
        return float(method(operator, products))

    seconds = {
        vectors: best_of(1, lambda _, vectors=vectors: eigenvalue(0, vectors))
        for vectors in VECTORS
        if truth.finds(partial(eigenvalue, vectors=vectors), seeds)
    }
    vectors = min(seconds, key=seconds.__getitem__)
    found = {}
    for method in (hutchpp_trace, xtrace):
        errors = (
            (products, truth.error(partial(trace, method=method, products=products), seeds))
            for products in PRODUCTS
        )
        reached = next((products for products, error in errors if error <= TRACE), PRODUCTS[-1])
        found[method] = reached, best_of(1, lambda _, m=method, p=reached: trace(0, m, p))
    method = min(found, key=lambda method: found[method][1])
    products = found[method][0]
    return Peer(
        lambda: eigenvalue(0, vectors),
        lambda: trace(0, method, products),
        1.0,
        f"ncv={vectors}, {method.__name__} with {products} products",
    )
