"""The peers of hessian.py, PyHessian and curvlinops with scipy, each brought to the accuracy asked
for.
"""

import math
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch
from curvlinops import HessianLinearOperator, hutchpp_trace
from pyhessian import hessian as PyHessian
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor, nn

from lightning_modules.networks import Network

EIGENVALUE, TRACE = 0.01, 0.02
Batches = list[tuple[Tensor, Tensor]]
Cost = tuple[float, float, float]  # seconds, products, error


def of_pyhessian(
    network: Network, batches: Batches, seeds: range, reference: tuple[float, float]
) -> tuple[Cost, Cost]:
    """The costs of eigenvalue and trace by PyHessian.

    One batch is given to it as such, so that it, too, keeps the gradient's graph.
    """

    def start(seed: int):
        torch.manual_seed(seed)
        where = {"data": batches[0]} if len(batches) == 1 else {"dataloader": batches}
        return PyHessian(network, nn.CrossEntropyLoss(), cuda=False, **where)

    calls = Counted(torch.autograd.grad)

    def run(seed: int, tolerance: float) -> tuple[float, int]:
        calls.count = 0
        torch.autograd.grad = calls
        try:
            value = start(seed).eigenvalues(maxIter=500, tol=tolerance)[0][0]
        finally:
            torch.autograd.grad = calls.function
        return value, calls.count // len(batches)

    for tolerance in (1e-2, 3e-3, 1e-3, 3e-4, 1e-4):
        attempt = partial(run, tolerance=tolerance)
        eigenvalue = reached(attempt, seeds, reference[0], strict=False)
        if eigenvalue[2] <= EIGENVALUE:
            break
    took, samples = timed(lambda: start(0).trace(maxIter=100, tol=0.0))
    network.zero_grad()
    return eigenvalue, hutchinson_cost(np.array(samples), took, reference[1])


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.count = function, 0

    def __call__(self, *args, **kwargs):
        """Count, and call the function."""
        self.count += 1
        return self.function(*args, **kwargs)


def hutchinson_cost(samples: np.ndarray, seconds: float, reference: float) -> Cost:
    """What as many samples would cost as bring the standard error to the accuracy."""
    needed = max(1, math.ceil((samples.std() / reference / TRACE) ** 2))
    return seconds / len(samples) * needed, needed, TRACE


def of_curvlinops(
    network: Network,
    batches: Batches,
    seeds: range,
    reference: tuple[float, float],
    patience: float,
) -> tuple[Cost, Cost]:
    """The costs of eigenvalue and trace by curvlinops.

    Its trace is given up, with the error that it has by then, when a single estimate has taken
    `patience` seconds: it is slower.
    """
    weights = list(network.parameters())
    operator = HessianLinearOperator(
        network, nn.CrossEntropyLoss(), weights, batches, check_deterministic=False
    )

    def run(seed: int) -> tuple[float, int]:
        product = Counted(lambda v: operator @ torch.from_numpy(v))
        scipy_form = LinearOperator(
            operator.shape,
            matvec=lambda v: product(v.ravel()).numpy(),  # pyright: ignore[reportCallIssue]
            dtype=np.float32,  # pyright: ignore[reportCallIssue]
        )
        first = np.random.default_rng(seed).standard_normal(operator.shape[0], dtype=np.float32)
        options: dict[str, Any] = {"tol": EIGENVALUE, "v0": first, "return_eigenvectors": False}
        value = eigsh(scipy_form, k=1, which="LA", **options)[0]
        return float(value), product.count

    eigenvalue = reached(run, seeds, reference[0])
    for products in (12, 18, 24, 30, 36, 48, 60, 90, 120, 180, 240):
        errors, seconds = [], []
        for seed in seeds:
            torch.manual_seed(seed)
            took, value = timed(lambda n=products: hutchpp_trace(operator, n))
            errors.append(float(value) / reference[1] - 1)
            seconds.append(took)
            if took > patience:
                break
        if max(seconds) > patience or np.sqrt(np.mean(np.square(errors))) <= TRACE:
            break
    error = float(np.sqrt(np.mean(np.square(errors))))
    return eigenvalue, (float(np.mean(seconds)), products, error)


def reached(
    run: Callable[[int], tuple[float, int]], seeds: range, reference: float, strict: bool = True
) -> Cost:
    """Mean seconds and products over seeds, and the worst error."""
    results = [timed(lambda seed=seed: run(seed)) for seed in seeds]
    error = max(abs(value / reference - 1) for _, (value, _) in results)
    assert error <= EIGENVALUE or not strict, f"the eigenvalue is {error:.2%} off"
    return (
        float(np.mean([seconds for seconds, _ in results])),
        float(np.mean([products for _, (_, products) in results])),
        error,
    )


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call, and what it returns."""
    start = perf_counter()
    result = work()
    return perf_counter() - start, result
