"""A delivery's gain by the error of its targets: in bins of items, and as a rank correlation."""

from dataclasses import dataclass

import numpy as np
import torch

from metrics import functional
from studies.analysis.statistics import bootstrap_interval

NO_ERROR = 1e-6  # a distance below it is rounding: one vote more or less is above 1e-4


@dataclass(frozen=True)
class Gains:
    """What a delivery gains on each item, for one number of votes and one seed."""

    distance: np.ndarray
    gain: np.ndarray  # in nats; above 0 where this delivery is better than the reference


@dataclass(frozen=True)
class Bin:
    """The mean gain over the items whose target error lies in a range, `low` excluded (the first
    bin is of targets without error).
    """

    low: float
    high: float
    distance: float  # mean over items
    items: int  # of all seeds together
    seeds: int
    gain: float  # mean over seeds of their means over items
    gain_low: float  # 95 % bootstrap interval over seeds; NaN for one
    gain_high: float


def bin_edges(distance: np.ndarray, number: int) -> np.ndarray:
    """The upper edges of a bin for targets without error and of `number` bins that hold equally
    many of the others; ties can make them fewer.

    Of CIFAR-10H almost half of all items are unanimous, so their few votes are exact; bins of equal
    mass over all items would be mostly of those, and bins of equal width mostly empty.

    >>> bin_edges(np.array([0.0, 0.0, 1.0, 2.0, 3.0, 4.0]), 2).tolist()
    [0.0, 2.5, 4.0]
    """
    errors = distance[distance > NO_ERROR]
    if not len(errors):
        return np.zeros(1)
    return np.append(0.0, np.unique(np.quantile(errors, np.linspace(0, 1, number + 1)[1:])))


def gain_by_bin(seeds: list[Gains], edges: np.ndarray) -> list[Bin]:
    """The mean gain in each bin that all seeds have items in.

    A bin in which some seed has none is left out: its mean would be over other seeds than those
    beside it.
    """
    number = len(edges)
    errors = [np.where(gains.distance > NO_ERROR, gains.distance, 0) for gains in seeds]
    bins = [np.searchsorted(edges, error).clip(max=number - 1) for error in errors]

    def sums(values: list[np.ndarray]) -> np.ndarray:
        """Of each seed's items, by bin: [seeds, bins]."""
        pairs = zip(bins, values, strict=True)
        return np.stack([np.bincount(b, weights=v, minlength=number) for b, v in pairs])

    counts = np.stack([np.bincount(b, minlength=number) for b in bins])
    gain_sums = sums([gains.gain for gains in seeds])
    distance_sums = sums([gains.distance for gains in seeds]).sum(0)
    result = []
    for place in np.flatnonzero(counts.all(0)):
        means = gain_sums[:, place] / counts[:, place]
        low, high = bootstrap_interval(means) if len(means) > 1 else (np.nan, np.nan)
        items = int(counts[:, place].sum())
        result.append(
            Bin(
                low=float(edges[place - 1]) if place else 0.0,
                high=float(edges[place]),
                distance=float(distance_sums[place] / items),
                items=items,
                seeds=len(means),
                gain=float(means.mean()),
                gain_low=low,
                gain_high=high,
            )
        )
    return result


def rank_correlation(gains: Gains) -> float:
    """Spearman's, between target error and gain; NaN where either is the same for all items."""
    if len(gains.gain) < 2:
        return float("nan")
    error, gain = torch.from_numpy(gains.distance), torch.from_numpy(gains.gain)
    return functional.correlation(error, gain, "spearman").item()
