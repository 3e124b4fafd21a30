"""The floor and the ceiling of every score, from votes alone.

Floor: the best constant prediction, which is the mean of the training items' distributions.
Ceiling: what a model would score that knew each item's true distribution. It is not perfect: votes
are few, and differ from the distribution that they are drawn from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from core.errors import InputError
from core.randomness import generator
from metrics import by_function, registered, values_of
from metrics.registry import Score
from metrics.worth.plausible_priors import plausible_priors

LEAST_ITEMS = 3
DRAWS = 2  # of all items' distributions, under the best prior
TOO_FEW = 0.05  # of (floor − ceiling): wider, and votes are too few to tell


@dataclass(frozen=True)
class Bounds:
    """What one score of some items can be."""

    floor: float
    ceiling: float
    low: float  # the least and the largest ceiling that the votes allow
    high: float

    @property
    def uncertain(self) -> bool:
        """Whether votes are too few for the ceiling to be a number: it is then an interval."""
        return self.high - self.low > TOO_FEW * abs(self.floor - self.ceiling)

    def skill(self, score: float) -> float:
        """Where a score stands: 0 at the floor, 1 at the ceiling; NaN where these are one.

        >>> Bounds(floor=0.4, ceiling=0.0, low=0.0, high=0.0).skill(0.3)
        0.25
        """
        room = self.floor - self.ceiling
        return (self.floor - score) / room if room else float("nan")


def score_bounds(
    train_counts: np.ndarray,
    counts: np.ndarray,
    scores: Sequence[Score] | None = None,
    seed: int = 0,
) -> dict[str, Bounds]:
    """Floor and ceiling of each score on items with these votes [N, K], by the score's name.

    >>> votes = np.array([[5, 0], [4, 1], [0, 5], [2, 3]] * 50)
    >>> nll = score_bounds(votes, votes)["soft_nll"]
    >>> nll.ceiling < nll.floor, round(nll.skill(nll.ceiling), 1)
    (True, 1.0)
    """
    if len(counts) < LEAST_ITEMS:
        raise InputError(
            f"there are {len(counts)} items; what a score is worth takes at least {LEAST_ITEMS}."
        )
    scores = list(registered().values() if scores is None else scores)
    totals = counts.sum(1, keepdims=True)
    votes = counts / totals
    mean = (train_counts / train_counts.sum(1, keepdims=True)).mean(0)
    floors = _values(scores, np.broadcast_to(mean, votes.shape), votes)
    best, *extremes = [
        np.mean(
            [
                _values(scores, prior.draw(counts, generator(seed, "truth", which, draw)), votes)
                for draw in range(1 if which else DRAWS)
            ],
            0,
        )
        for which, prior in enumerate(plausible_priors(counts, seed))
    ]
    ends = np.stack([best, *extremes])
    table = zip(scores, floors, best, ends.min(0), ends.max(0), strict=True)
    return {score.name: Bounds(*map(float, row)) for score, *row in table}


def split_half_scores(counts: np.ndarray, seed: int = 0) -> dict[str, float]:
    """What one half of the annotators scores against the other, on items with two votes or more."""
    counts = counts[counts.sum(1) > 1]
    if len(counts) < LEAST_ITEMS:
        raise InputError(
            f"{len(counts)} items have two votes or more; to compare two halves of the annotators "
            f"takes at least {LEAST_ITEMS}."
        )
    rng = generator(seed, "split half")
    half = rng.multivariate_hypergeometric if False else None  # placeholder
    raise NotImplementedError(half)


def _values(scores: Sequence[Score], probs: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """Each score of predictions against votes; NaN where it is not defined."""
    model, annotators = torch.from_numpy(np.ascontiguousarray(probs)), torch.from_numpy(votes)
    values: dict[str, torch.Tensor] = {}
    for group in by_function(scores):
        values |= values_of(group, model, annotators)
    return np.array([float(values[score.name]) for score in scores])
