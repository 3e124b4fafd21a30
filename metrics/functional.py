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
from metrics.decisions import aurc, disagreement_auroc, macro_f1
from metrics.inputs import Values, as_double, distributions, distributions_of_items
from metrics.ordinal import (
    mean_rating_error,
    ranked_probability_score,
    rating_alpha,
    wasserstein_distance,
)

__all__ = [
    "BrierParts",
    "Kind",
    "Outcome",
    "aurc",
    "binned_gap",
    "brier_decomposition",
    "confidence_and_outcome",
    "correlation",
    "disagreement_auroc",
    "entropy",
    "entropy_calibration_error",
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
    "js_divergence",
    "kl_divergence",
    "macro_f1",
    "mean_rating_error",
    "rank_calibration_score",
    "ranked_probability_score",
    "rating_alpha",
    "smooth_ece",
    "soft_brier",
    "soft_nll",
    "total_variation",
    "wasserstein_distance",
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


def total_variation(probs: Values, target_probs: Values) -> Tensor:
    """Mean total variation distance to annotators, DistCE of Baan et al. 2022: the least share of
    votes that would have to change.

    Soft accuracy, the mean of the summed minima of both, is 1 minus it.

    >>> total_variation([[0.5, 0.5]], [[1.0, 0.0]]).item()
    0.5
    """
    return per_item.tvd(*distributions(probs, target_probs)).mean()


def js_divergence(probs: Values, target_probs: Values) -> Tensor:
    """Mean Jensen-Shannon divergence between model and annotators, in nats."""
    return per_item.js(*distributions(probs, target_probs)).mean()


def entropy_calibration_error(probs: Values, target_probs: Values, absolute: bool = True) -> Tensor:
    """EntCE of Baan et al. 2022: the mean difference between the model's entropy and the
    annotators', in nats.

    Their code has both forms. Without `absolute`, errors up and down cancel out, and the sign says
    whether the model is less sure than people (above 0) or surer.
    """
    return per_item.entropy_error(*distributions(probs, target_probs), absolute).mean()


def rank_calibration_score(
    probs: Values, target_probs: Values, ties: per_item.Ties = "free"
) -> Tensor:
    """RankCS of Baan et al. 2022: the share of items of which the model ranks all classes as
    annotators do.

    What of classes with equally many votes, as all have that nobody chose, the source does not
    state. Where ties are "free" the model may rank them in any order; by "first" the lower class
    number comes first on both sides, as by a stable sort. A tie of the model's own between classes
    that annotators rank is no match.

    >>> rank_calibration_score([[0.5, 0.2, 0.3], [0.3, 0.5, 0.2]],
    ...     [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1]]).item()
    0.5
    """
    return per_item.same_ranking(*distributions(probs, target_probs), ties).mean()


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
