"""Distances to annotators beside the proper scores: of distributions, entropies and rankings."""

import numpy as np

from metrics import per_item
from metrics.registry import Score, add


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
        floor="mean",  # the best constant has no closed form; the mean is near it
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
        floor="mean",
        reference="RankCS of Baan et al. 2022; classes of equal votes may come in any order",
    ),
):
    add(_score)
