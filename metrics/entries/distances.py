"""Distances to annotators beside the proper scores: of distributions, entropies and rankings."""

import numpy as np

from metrics import per_item
from metrics.registry import Score, add

STEPS = 20  # each leaves about two thirds of what the mean, a few percent off, is off by


def median_shares(train_probs: np.ndarray) -> np.ndarray:
    """The constant that is nearest to training items by total variation.

    That is one quantile of every class, the same for all, so chosen that they sum to 1: the median
    of two classes, and near it of more.

    >>> median_shares(np.array([[1.0, 0.0], [1.0, 0.0], [0.2, 0.8]])).tolist()
    [1.0, 0.0]
    """
    ordered = np.sort(train_probs, 0)
    sums = ordered.sum(1)
    above = min(int(np.searchsorted(sums, 1)), len(sums) - 1)
    below = max(above - 1, 0)
    step = sums[above] - sums[below]
    share = np.clip((1 - sums[below]) / step, 0, 1) if step > 0 else 1.0
    return ordered[below] + share * (ordered[above] - ordered[below])


def central_shares(train_probs: np.ndarray) -> np.ndarray:
    """The constant that is nearest to training items by Jensen-Shannon divergence.

    Each step is the geometric mean of what lies half-way between it and the items: a descent in
    relative entropy, by which the divergence never rises.
    """
    constant = train_probs.mean(0)
    for _ in range(STEPS):
        middle = ((train_probs + constant) / 2).clip(per_item.TINY)
        constant = np.exp(np.log(middle).mean(0))
        constant /= constant.sum()
    return constant


for _score in (
    Score(
        "tvd",
        per_item.tvd,
        "Total variation",
        "lower",
        per_item=True,
        batched=True,
        floor=median_shares,
        reference="DistCE of Baan et al. 2022; soft accuracy and soft micro F1 of Kurniawan et al. "
        "2025 are 1 - this",
    ),
    Score(
        "js",
        per_item.js,
        "Jensen-Shannon to annotators",
        "lower",
        "nats",
        per_item=True,
        batched=True,
        floor=central_shares,
        reference="Lin 1991",
    ),
    Score(
        "ent_ce",
        per_item.entropy_error,
        "Entropy calibration error",
        "lower",
        "nats",
        per_item=True,
        batched=True,
        reference="EntCE of Baan et al. 2022, absolute",
    ),
    Score(
        "rank_cs",
        per_item.same_ranking,
        "Classes ranked as by annotators",
        "higher",
        "share of items",
        per_item=True,
        batched=True,
        floor="mean",  # its ranking; the best one is not searched for
        reference="RankCS of Baan et al. 2022; classes of equal votes may come in any order",
    ),
):
    add(_score)
