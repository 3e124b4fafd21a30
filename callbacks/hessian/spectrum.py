"""Eigenvalues, trace and density of one Hessian, from as few products as serve all three."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from callbacks.hessian.eigenvalues import Ends, ends_by_lanczos, ends_by_power_iteration
from callbacks.hessian.hessian_product import HessianProduct
from callbacks.hessian.lanczos import Ritz, lanczos
from callbacks.hessian.trace_estimate import Trace, hutchinson, xtrace
from core.randomness import generator

Eigenvalues = Literal["lanczos", "power"]
Traces = Literal["hutch++", "xtrace", "hutchinson"]


@dataclass(frozen=True)
class Spectrum:
    """What `measure_spectrum` finds, and how many Hessian-vector products it spends on it."""

    ends: Ends
    trace: Trace
    spaces: list[Ritz]
    products: int


def measure_spectrum(
    product: HessianProduct,
    seed: int = 0,
    tolerance: float = 0.01,
    trace_tolerance: float = 0.02,
    eigenvalues: Eigenvalues = "lanczos",
    trace: Traces = "hutch++",
    least_steps: int = 20,
    most_products: int = 200,
    density_starts: int = 1,
) -> Spectrum:
    """Extreme eigenvalues, trace and the Ritz values that the density is drawn from; the options
    are those of `HessianSpectrum`.

    One Lanczos run serves all three: its ends are the eigenvalues, its space is the sketch that
    takes the large eigenvalues out of the trace's sampling error, and its Ritz values are the first
    quadrature of the density.
    """
    device = product.parameters[0].device

    def draw(purpose: str, number: int) -> Tensor:
        signs = generator(seed, purpose, number).integers(0, 2, size=product.size, dtype=np.int8)
        return torch.from_numpy(signs).to(device, product.parameters[0].dtype).mul_(2).sub_(1)

    def probe(number: int) -> Tensor:
        return draw("hessian-trace", number)

    start = draw("hessian-start", 0)
    ends, krylov = None, None
    if eigenvalues == "power":
        ends = ends_by_power_iteration(product, start, tolerance, most_products)
    if ends is None or trace == "hutch++":
        by_lanczos, krylov = ends_by_lanczos(product, start, tolerance, least_steps, most_products)
        ends = ends or by_lanczos
    if trace == "xtrace":
        estimate = xtrace(product, probe, product.size, trace_tolerance, most_products)
    else:
        sketch = krylov if trace == "hutch++" else None
        estimate = hutchinson(product, probe, trace_tolerance, most_products, sketch)
    spaces = [krylov.ritz()] if krylov else []
    steps = len(spaces[0].values) if spaces else least_steps
    while len(spaces) < density_starts:
        spaces.append(lanczos(product, draw("hessian-start", len(spaces)), steps).ritz())
    return Spectrum(ends, estimate, spaces, product.spent)
