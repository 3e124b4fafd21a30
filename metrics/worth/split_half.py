"""What people themselves score: one half of each item's annotators against the other."""

from collections.abc import Sequence

import numpy as np

from core.randomness import generator
from metrics.registry import Score, registered
from metrics.worth.floors import check_items, score_values, vote_shares


def split_half_scores(
    counts: np.ndarray, scores: Sequence[Score] | None = None, seed: int = 0
) -> dict[str, float]:
    """What one half of each item's annotators scores against the other half, as predictions; of
    items with two votes or more. A half is given one vote more, shared as all votes are: what few
    people did not choose is not impossible. Scores that are not defined are left out.

    >>> round(split_half_scores(np.array([[4, 0], [0, 4], [4, 0]]))["accuracy"], 1)
    1.0
    """
    counts = counts[counts.sum(1, dtype=np.int64) > 1].astype(np.int64)
    check_items(len(counts), "items have two votes or more")
    scores = list(registered().values() if scores is None else scores)
    rng = generator(seed, "split half")
    half, left, rest = np.zeros_like(counts), counts.sum(1) // 2, counts.sum(1)
    for label in range(counts.shape[1]):  # drawn without replacement, class by class
        rest = rest - counts[:, label]
        half[:, label] = rng.hypergeometric(counts[:, label], rest, left)
        left = left - half[:, label]
    model = half + counts.sum(0) / counts.sum()
    said = score_values(scores, model / model.sum(1, keepdims=True), vote_shares(counts - half))
    return {
        score.name: float(value)
        for score, value in zip(scores, said, strict=True)
        if np.isfinite(value)
    }
