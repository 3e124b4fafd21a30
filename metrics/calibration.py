"""Calibration of predictions against annotators, and what the Brier score is made of: pure
functions of (probs, target_probs), which `metrics.functional` has as well.
"""

from typing import Literal, NamedTuple

import numpy as np
import torch
from scipy.fft import next_fast_len
from torch import Tensor

from metrics import per_item
from metrics.inputs import Values, as_double, distributions

Outcome = Literal["majority", "annotators"]


def confidence_and_outcome(
    probs: Values, target_probs: Values, against: Outcome = "majority"
) -> tuple[Tensor, Tensor]:
    """The top predicted probability of each item and what it should equal on average.

    Against the majority the outcome is 1 or 0 (the usual convention, by which a model that repeats
    people exactly is *not* calibrated wherever they disagree). Against annotators it is the share
    of people who chose the predicted class.
    """
    model, annotator_probs = distributions(probs, target_probs)
    confidence, predicted = model.double().max(-1)
    if against == "majority":
        return confidence, per_item.hit(model, annotator_probs)
    return confidence, annotator_probs.double().gather(-1, predicted[:, None])[:, 0]


def equal_mass_ece(
    probs: Values, target_probs: Values, bins: int = 15, against: Outcome = "majority"
) -> Tensor:
    """Expected calibration error of the top class over bins that hold equally many items.

    The papers do not state their number of bins.
    """
    return binned_gap(*confidence_and_outcome(probs, target_probs, against), bins)


def binned_gap(confidence: Values, outcome: Values, bins: int) -> Tensor:
    """The weighted mean over equal-mass bins of |mean confidence - mean outcome|.

    >>> binned_gap(torch.tensor([0.6, 0.6, 0.9, 0.9]), torch.tensor([1.0, 0.0, 1.0, 1.0]),
    ...     bins=2).item()
    0.1...
    """
    confidence, order = as_double(confidence).sort(stable=True)
    gap = confidence - mean_over_ties(confidence[:, None], as_double(outcome)[order][:, None])[:, 0]
    return _sum_by(_equal_mass_bins(len(gap), bins), gap, bins).abs().sum() / len(gap)


def smooth_ece(probs: Values, target_probs: Values, against: Outcome = "majority") -> Tensor:
    """Smooth calibration error of the top class (Blasiok and Nakkiran 2023): no bins to choose.

    It is that of the authors' relplot, on the same grids, several times as fast.
    """
    confidence, outcome = confidence_and_outcome(probs, target_probs, against)
    told, seen = (values.detach().cpu().numpy() for values in (confidence, outcome))
    return torch.as_tensor(_SmoothGap(told, told - seen).at_its_own_width(), dtype=torch.float64)


class _SmoothGap:
    """The gaps of all items, smoothed along confidence by a Gaussian that is reflected at 0 and 1;
    its size at a width that equals it, which is smooth calibration's choice of a width.
    """

    LEAST, HALVINGS = 0.001, 10  # widths that are told apart

    def __init__(self, confidence: np.ndarray, gap: np.ndarray):
        self.confidence, self.gap = confidence, gap
        self.grids: dict[int, np.ndarray] = {}

    def at_its_own_width(self) -> float:
        """By halving: at a larger width the gap is smaller than the width."""
        if self.at(1.0) > 1:
            return self.at(1.0)
        low, high = 0.0, 1.0
        for _ in range(self.HALVINGS):
            width = (low + high) / 2
            if width < self.LEAST or width < self.at(width):
                low = width
            else:
                high = width
        return self.at(high)

    def at(self, width: float) -> float:
        """The mean of |smoothed gap| over items."""
        points = max(2000, round(20 / width)) // 2 + 1
        if points not in self.grids:
            self.grids[points] = self._on_grid(points)
        reflected = self.grids[points]
        distance = np.linspace(-0.5, 0.5, points) / width
        kernel = np.exp(-np.square(distance) / 2) / (np.sqrt(2 * np.pi) * width)
        size = next_fast_len(reflected.shape[1] + points - 1, real=True)
        smooth = np.fft.irfft(np.fft.rfft(reflected, size) * np.fft.rfft(kernel, size), size)
        smooth = smooth[:, points - 1 + points // 2 :][:, :points]
        places = np.linspace(0, 1, max(round(10 / width), 200))
        gap, items = (np.interp(places, np.linspace(0, 1, points), row) for row in smooth)
        return np.abs(gap).sum() / (items + 1e-4).sum()  # relplot's least density

    def _on_grid(self, points: int) -> np.ndarray:
        """Gaps and items summed at evenly spaced places, each shared by the two nearest, between
        their reflections.
        """
        exact = self.confidence * (points - 1)
        below = exact.astype(int).clip(0, points - 2)
        share = exact - below
        rows = [
            np.bincount(below, (1 - share) * weight, points)
            + np.bincount(below + 1, share * weight, points)
            for weight in (self.gap, np.ones_like(self.gap))
        ]
        return np.stack([np.concatenate((row[:0:-1], row, row[-2::-1])) for row in rows])


class BrierParts(NamedTuple):
    """`reliability - resolution + uncertainty` is the soft Brier score, exactly."""

    reliability: Tensor
    resolution: Tensor
    uncertainty: Tensor


def brier_decomposition(probs: Values, target_probs: Values, bins: int = 15) -> BrierParts:
    """Split the soft Brier score, class by class over equal-mass bins of the predicted probability,
    and add up the classes.

    Predictions vary within a bin, so Murphy's three parts alone do not sum to the score; what
    varies within bins is counted in the resolution (Stephenson, Coelho and Jolliffe 2008), which
    makes the sum exact for any number of bins.

    >>> people = torch.tensor([[0.9, 0.1], [0.2, 0.8]]); model = torch.tensor([[0.7, 0.3],
    ...     [0.4, 0.6]])
    >>> parts = brier_decomposition(model, people, bins=2)
    >>> score = per_item.brier(model, people).mean()
    >>> torch.isclose(parts.reliability - parts.resolution + parts.uncertainty, score).item()
    True
    """
    model, annotator_probs = (table.double() for table in distributions(probs, target_probs))
    forecast, order = model.sort(dim=0, stable=True)
    base_rate = annotator_probs.mean(0)
    uncertainty = (annotator_probs - base_rate).square().sum(1).mean()
    outcome = mean_over_ties(forecast, annotator_probs.gather(0, order))
    items = len(forecast)
    bin_of = _equal_mass_bins(items, bins).to(forecast.device)
    size = _sum_by(bin_of, torch.ones_like(forecast), bins)
    mean_forecast, mean_outcome = (
        _sum_by(bin_of, values, bins) / size.clamp_min(1) for values in (forecast, outcome)
    )
    reliability = (size * (mean_forecast - mean_outcome).square()).sum() / items
    between = (size * (mean_outcome - base_rate).square()).sum() / items
    forecast_rest, outcome_rest = forecast - mean_forecast[bin_of], outcome - mean_outcome[bin_of]
    within = (2 * forecast_rest * outcome_rest - forecast_rest.square()).sum() / items
    return BrierParts(reliability, between + within, uncertainty)


def mean_over_ties(forecast: Tensor, outcome: Tensor) -> Tensor:
    """Give items of equal forecast (sorted, column by column) their common mean outcome: which of
    them falls into which bin is chance.
    """
    step = torch.ones_like(forecast, dtype=torch.long)
    step[1:] = forecast[1:] != forecast[:-1]
    group = step.cumsum(0) - 1
    shape = (int(group.max()) + 1, forecast.shape[1])
    total = torch.zeros(shape, dtype=torch.float64, device=forecast.device).scatter_add_(
        0, group, outcome
    )
    size = torch.zeros_like(total).scatter_add_(0, group, torch.ones_like(outcome))
    return (total / size.clamp_min(1)).gather(0, group)


def _equal_mass_bins(items: int, bins: int) -> Tensor:
    """The bin of each of `items` sorted values; where there are fewer items than bins, some bins
    stay empty.
    """
    return torch.from_numpy(np.arange(items) * bins // items)


def _sum_by(bin_of: Tensor, values: Tensor, bins: int) -> Tensor:
    return torch.zeros(
        bins, *values.shape[1:], dtype=torch.float64, device=values.device
    ).index_add_(0, bin_of.to(values.device), values.double())
