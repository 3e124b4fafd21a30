"""Functions of each item, of tensors whose last dimension holds distributions.

Nothing is checked here: they are for what was checked before, and for what this project's own
models say, which may be the softmax [members, N, K] of a whole pack and NaN where one of them
diverged.

`metrics.functional` and `metrics.cartography` have the same functions for everybody else: those
look at what they are given.

>>> brier(torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([[0.5, 0.5], [0.5, 0.5]])).tolist()
[0.5, 0.0]
"""

from typing import Literal

import torch
from torch import Tensor

TINY = torch.finfo(torch.float64).tiny
Ties = Literal["free", "first"]


def entropy(probs: Tensor) -> Tensor:
    """Entropy in nats, summed in order of size."""
    return torch.special.entr(probs.double().sort(-1).values).sum(-1)


def nll(probs: Tensor, target_probs: Tensor) -> Tensor:
    """Cross-entropy in nats; a probability of 0 counts as the smallest positive float64."""
    return -(target_probs.double() * probs.double().clamp_min(TINY).log()).sum(-1)


def hard_nll(probs: Tensor, target_probs: Tensor) -> Tensor:
    """Cross-entropy against the majority class, in nats."""
    model = probs.double()
    majority = target_probs.double().argmax(-1, keepdim=True).expand(*model.shape[:-1], 1)
    return -model.gather(-1, majority)[..., 0].clamp_min(TINY).log()


def kl(probs: Tensor, target_probs: Tensor) -> Tensor:
    """KL(annotators || model) in nats."""
    return nll(probs, target_probs) - nll(target_probs, target_probs)


def js(probs: Tensor, other_probs: Tensor) -> Tensor:
    """Jensen-Shannon divergence in nats."""
    p, q = probs.double(), other_probs.double()
    middle = ((p + q) / 2).clamp_min(TINY)  # 0 only where both are, and there nothing is added
    return (
        (torch.special.xlogy(p, p / middle) + torch.special.xlogy(q, q / middle)).sum(-1) / 2
    ).clamp_min(0)


def brier(probs: Tensor, target_probs: Tensor) -> Tensor:
    """Squared distance to the annotator distribution."""
    return (probs.double() - target_probs.double()).square().sum(-1)


def tvd(probs: Tensor, target_probs: Tensor) -> Tensor:
    """Total variation distance: half the sum of absolute differences."""
    return (probs.double() - target_probs.double()).abs().sum(-1) / 2


def entropy_error(probs: Tensor, target_probs: Tensor, absolute: bool = True) -> Tensor:
    """How far the model's entropy is from the annotators', in nats."""
    error = entropy(probs) - entropy(target_probs)
    return error.abs() if absolute else error


def same_ranking(probs: Tensor, target_probs: Tensor, ties: Ties = "free") -> Tensor:
    """1 where the model ranks all classes as annotators do, else 0; NaN where the model says
    NaN.
    """
    model = probs.double()
    people = target_probs.double().expand(model.shape)
    if ties == "first":
        same = (_ranking(model) == _ranking(people)).all(-1)
    else:
        # classes by the annotators' order, and within their ties by the model's
        order = model.argsort(dim=-1, descending=True)
        people, model = people.gather(-1, order), model.gather(-1, order)
        people, order = people.sort(dim=-1, descending=True, stable=True)
        model = model.gather(-1, order)
        falls = model[..., 1:] < model[..., :-1]
        same = (falls | (people[..., 1:] == people[..., :-1])).all(-1)
    return torch.where(probs.isnan().any(-1), torch.nan, same.double())


def _ranking(probs: Tensor) -> Tensor:
    return probs.argsort(dim=-1, descending=True, stable=True)


def hit(probs: Tensor, target_probs: Tensor) -> Tensor:
    """1 where the predicted class is the majority's, else 0; NaN where the model says NaN."""
    confidence, predicted = probs.double().max(-1)
    return torch.where(
        confidence.isnan(), confidence, (predicted == target_probs.double().argmax(-1)).double()
    )


def wasserstein(probs: Tensor, target_probs: Tensor) -> Tensor:
    """Wasserstein-1 distance where neighbouring classes are 1 apart."""
    return _above(probs, target_probs).abs().sum(-1)


def rps(probs: Tensor, target_probs: Tensor) -> Tensor:
    """Ranked probability score: the squared distance of cumulative distributions."""
    return _above(probs, target_probs).square().sum(-1)


def rating_error(probs: Tensor, target_probs: Tensor) -> Tensor:
    """How far the model's mean rating is from the annotators', in classes."""
    return (mean_rating(probs) - mean_rating(target_probs)).abs()


def mean_rating(probs: Tensor) -> Tensor:
    """The mean of class numbers, which begin at 0."""
    rating = torch.arange(probs.shape[-1], dtype=torch.float64, device=probs.device)
    return (probs.double() * rating).sum(-1)


def _above(probs: Tensor, target_probs: Tensor) -> Tensor:
    """By how much more the model says "at most this class" than annotators do, but for the last."""
    return (probs.double() - target_probs.double()).cumsum(-1)[..., :-1]


def map_values(probs: Tensor, annotators: Tensor, target_class: Tensor) -> Tensor:
    """What `metrics.cartography.item_values` gives."""
    model = probs.double()
    target = target_class.expand(model.shape[:-1])[..., None]
    return torch.stack(
        [
            model.gather(-1, target)[..., 0],
            (model * annotators.double()).sum(-1),
            (model.argmax(-1, keepdim=True) == target)[..., 0],
        ]
    )
