"""By how much means over seeds change, in percent of a reference, and how sure that is: what "61 %
stronger" should come with.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from core.errors import InputError
from core.randomness import generator

Pairs = tuple[np.ndarray, np.ndarray]  # values and those of the reference, seed by seed


class Change(NamedTuple):
    """In percent: mean / mean of the reference - 1.

    `low` to `high` is its 95 % interval; NaN where it is not defined.
    """

    percent: float
    low: float
    high: float


UNDEFINED = Change(math.nan, math.nan, math.nan)


def relative_change(groups: list[Pairs], resamples: int = 10_000, seed: int = 0) -> Change:
    """The mean over groups (datasets) of each one's relative change, with a bootstrap interval.

    Seeds are drawn anew within each group and keep their pairs. The interval is the bias-corrected
    and accelerated (BCa) one of Efron (1987), with the acceleration from the influence of each pair
    on the ratio. A change in percent has no meaning where the reference is not above 0, so it is
    NaN where a reference's mean is not, and its interval is where that of a resample is not. One
    pair has no interval.

    >>> relative_change([(np.array([2.0, 4.0]), np.array([1.0, 3.0]))]).percent
    50.0
    >>> relative_change([(np.ones(2), -np.ones(2))]).percent
    nan
    """
    if not groups or any(len(a) != len(b) or not len(a) for a, b in groups):
        raise InputError("a relative change takes at least one pair of values in every group.")
    if any(b.mean() <= 0 for _, b in groups):
        return UNDEFINED
    change = float(np.mean([a.mean() / b.mean() - 1 for a, b in groups]))
    percent = 100 * change
    if any(len(a) < 2 for a, _ in groups):
        return Change(percent, math.nan, math.nan)
    drawn, influence = [], []
    for place, (a, b) in enumerate(groups):
        rows = generator(seed, "relative-change", place).integers(len(a), size=(resamples, len(a)))
        below = b[rows].mean(1)
        if below.min() <= 0:
            return Change(percent, math.nan, math.nan)
        drawn.append(a[rows].mean(1) / below - 1)
        influence.append((a - a.mean() / b.mean() * b) / b.mean() / len(a))
    shifts = np.mean(drawn, axis=0) - change
    shifts[np.abs(shifts) < 1e-12] = 0
    if not shifts.any():
        return Change(percent, percent, percent)
    pulls = np.concatenate(influence)
    bias = ndtri((np.mean(shifts < 0) + np.mean(shifts <= 0)) / 2)
    acceleration = (pulls**3).sum() / (6 * (pulls**2).sum() ** 1.5)
    nominal = bias + ndtri([0.025, 0.975])
    levels = ndtr(bias + nominal / (1 - acceleration * nominal))
    low, high = 100 * (change + np.quantile(shifts, levels))
    return Change(percent, float(low), float(high))
