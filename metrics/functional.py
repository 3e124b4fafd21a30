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

from typing import Literal

import torch
from torch import Tensor

from metrics import per_item
from metrics.calibration import (
    BrierParts,
    Outcome,
    binned_gap,
    brier_decomposition,
    confidence_and_outcome,
    equal_mass_ece,
    smooth_ece,
)
from metrics.inputs import Values, as_double, distributions, distributions_of_items

__all__ = [
    "BrierParts",
    "Kind",
    "Outcome",
    "binned_gap",
    "brier_decomposition",
    "confidence_and_outcome",
    "correlation",
    "entropy",
    "entropy_correlation",
    "equal_mass_ece",
    "hard_accuracy",
    "hard_nll",
    "item_brier",
    "item_hard_nll",
    "item_hit",
    "item_js",
    "item_kl",
    "item_nll",
    "kl_divergence",
    "smooth_ece",
    "soft_brier",
    "soft_nll",
]

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
