"""How well predictions match annotators: pure functions of (probs, target_probs), both [N, K] with
rows that sum to 1.

They take torch tensors, numpy arrays or lists, and give torch tensors. All check that rows are
distributions and say in one sentence what else they look like. Functions of each item (`entropy`,
`item_…`) also take many tables at once, [..., N, K]; `metrics.per_item` has them without the
checks.

>>> people = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
>>> kl_divergence(people, people).item()
0.0
"""

from typing import Literal, NamedTuple

import numpy as np
import relplot
import torch
from torch import Tensor

from metrics import per_item
from metrics.inputs import Values, as_double, distributions, distributions_of_items

Outcome = Literal["majority", "annotators"]
Kind = Literal["spearman", "pearson"]


def entropy(probs: Values) -> Tensor:
    """Entropy of each row, in nats.

    Summed in order of size, so that rows with the same probabilities tie exactly.
    """
    return per_item.entropy(*distributions_of_items({"probs": probs}))


def item_nll(probs: Values, target_probs: Values) -> Tensor:
    """Cross-entropy of each row in nats.

    A predicted probability of 0 counts as the smallest positive float64 (708 nats).
    """
    return per_item.nll(*_pair(probs, target_probs))


def item_hard_nll(probs: Values, target_probs: Values) -> Tensor:
    """Cross-entropy of each row against its majority class alone (ties: lowest class number), in
    nats: what training on majority votes minimises.
    """
    return per_item.hard_nll(*_pair(probs, target_probs))


def item_kl(probs: Values, target_probs: Values) -> Tensor:
    """KL(annotators || model) of each row, in nats: 0 exactly where the model says what people
    said.
    """
    return per_item.kl(*_pair(probs, target_probs))


def item_js(probs: Values, other_probs: Values) -> Tensor:
    """Jensen-Shannon divergence between each row of one table and the same row of another, in nats:
    symmetric, from 0 to log 2.

    >>> # equal; nothing in common
    >>> item_js(torch.tensor([[0.5, 0.5], [1.0, 0.0]]),
    ...     torch.tensor([[0.5, 0.5], [0.0, 1.0]])).tolist()
    [0.0, 0.6931471805599453]
    """
    return per_item.js(*distributions_of_items({"probs": probs, "other_probs": other_probs}))


def item_brier(probs: Values, target_probs: Values) -> Tensor:
    """Squared distance of each row to the annotator distribution."""
    return per_item.brier(*_pair(probs, target_probs))


def item_hit(probs: Values, target_probs: Values) -> Tensor:
    """1 where the predicted class is the majority's (ties: lowest class number on both sides), else
    0.
    """
    return per_item.hit(*_pair(probs, target_probs))


def _pair(probs: Values, target_probs: Values) -> list[Tensor]:
    return distributions_of_items({"probs": probs, "target_probs": target_probs})


def soft_nll(probs: Values, target_probs: Values) -> Tensor:
    """Mean cross-entropy between annotators and model, the primary score.

    >>> soft_nll(torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]])).item()  # log 2
    0.6931471805599453
    """
    return per_item.nll(*distributions(probs, target_probs)).mean()


def hard_nll(probs: Values, target_probs: Values) -> Tensor:
    """Mean cross-entropy against the annotators' majority class.

    >>> hard_nll(torch.tensor([[0.5, 0.5]]), torch.tensor([[0.9, 0.1]])).item()  # log 2
    0.6931471805599453
    """
    return per_item.hard_nll(*distributions(probs, target_probs)).mean()


def kl_divergence(probs: Values, target_probs: Values) -> Tensor:
    """Mean KL(annotators || model)."""
    return per_item.kl(*distributions(probs, target_probs)).mean()


def soft_brier(probs: Values, target_probs: Values) -> Tensor:
    """Mean squared distance between predicted and annotator distributions.

    >>> soft_brier(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]])).item()
    0.5
    """
    return per_item.brier(*distributions(probs, target_probs)).mean()


def hard_accuracy(probs: Values, target_probs: Values) -> Tensor:
    """Share of items whose predicted class is the annotators' majority class."""
    return per_item.hit(*distributions(probs, target_probs)).mean()


def entropy_correlation(probs: Values, target_probs: Values, kind: Kind = "spearman") -> Tensor:
    """Correlation over items between the model's entropy and the annotators'.

    NaN where either is the same for all items.
    """
    model, annotator_probs = distributions(probs, target_probs)
    return correlation(per_item.entropy(model), per_item.entropy(annotator_probs), kind)


def correlation(x: Values, y: Values, kind: Kind) -> Tensor:
    """Pearson's correlation of two vectors, or of their ranks (ties share their mean rank).

    >>> round(correlation(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 4.0, 9.0]),
    ...     "spearman").item(), 6)
    1.0
    """
    x, y = as_double(x), as_double(y)
    if kind == "spearman":
        x, y = _mean_ranks(x), _mean_ranks(y)
    if x.min() == x.max() or y.min() == y.max():
        return torch.tensor(torch.nan, dtype=torch.float64, device=x.device)
    x, y = x.double() - x.double().mean(), y.double() - y.double().mean()
    return ((x * y).sum() / (x.norm() * y.norm())).clamp(-1, 1)


def _mean_ranks(values: Tensor) -> Tensor:
    _, group, size = values.unique(return_inverse=True, return_counts=True)
    return (size.cumsum(0) - (size - 1) / 2)[group]


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
    gap = (
        confidence - _mean_over_ties(confidence[:, None], as_double(outcome)[order][:, None])[:, 0]
    )
    return _sum_by(_equal_mass_bins(len(gap), bins), gap, bins).abs().sum() / len(gap)


def smooth_ece(probs: Values, target_probs: Values, against: Outcome = "majority") -> Tensor:
    """Smooth calibration error of the top class (Blasiok and Nakkiran 2023), by its authors'
    relplot: no bins to choose.
    """
    confidence, outcome = confidence_and_outcome(probs, target_probs, against)
    return torch.as_tensor(
        relplot.smECE(confidence.detach().cpu().numpy(), outcome.detach().cpu().numpy()),
        dtype=torch.float64,
    )


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
    >>> torch.isclose(parts.reliability - parts.resolution + parts.uncertainty,
    ...     soft_brier(model, people)).item()
    True
    """
    model, annotator_probs = (table.double() for table in distributions(probs, target_probs))
    forecast, order = model.sort(dim=0, stable=True)
    base_rate = annotator_probs.mean(0)
    uncertainty = (annotator_probs - base_rate).square().sum(1).mean()
    outcome = _mean_over_ties(forecast, annotator_probs.gather(0, order))
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


def _mean_over_ties(forecast: Tensor, outcome: Tensor) -> Tensor:
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
