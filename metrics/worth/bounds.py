"""The floor and the ceiling of every score, from votes alone.

Floor: the best constant prediction, out of the training items' votes. Ceiling: what a model would
score that knew each item's true distribution. It is not perfect: votes are few, and differ from the
distribution that they are drawn from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from core.errors import InputError
from core.randomness import generator
from metrics import by_function, registered, values_of
from metrics.registry import Floor, Score
from metrics.worth.plausible_priors import plausible_priors

LEAST_ITEMS = 3
DRAWS = 2  # of all items' distributions, under the best prior
WIDE = 0.05  # of floor - ceiling: a wider interval is one that votes are too few to narrow


@dataclass(frozen=True)
class Bounds:
    """What one score of some items can be; the floor is None where a constant is no measure of it,
    as of calibration.
    """

    floor: float | None
    ceiling: float
    low: float  # the least and the largest ceiling that the votes allow
    high: float

    @property
    def uncertain(self) -> bool:
        """Whether votes are too few for the ceiling to be a number: it is then an interval."""
        room = abs((self.floor or 0.0) - self.ceiling)
        return self.high - self.low > WIDE * room

    def skill(self, score: float) -> float | None:
        """Where a score stands: 0 at the floor, 1 at the ceiling; None where there is no floor, or
        no room between the two.

        >>> Bounds(floor=4.0, ceiling=0.0, low=0.0, high=0.0).skill(3.0)
        0.25
        """
        if self.floor is None or self.floor == self.ceiling:
            return None
        return (self.floor - score) / (self.floor - self.ceiling)


def score_bounds(
    train_counts: np.ndarray,
    counts: np.ndarray,
    scores: Sequence[Score] | None = None,
    seed: int = 0,
) -> dict[str, Bounds]:
    """Floor and ceiling of each score on items with these votes [N, K], by the score's name.

    >>> votes = np.array([[5, 0], [4, 1], [0, 5], [2, 3]] * 50)
    >>> nll = score_bounds(votes, votes)["soft_nll"]
    >>> nll.ceiling < nll.floor, nll.skill(nll.ceiling)
    (True, 1.0)
    """
    _check_items(len(counts), "items have votes")
    scores = list(registered().values() if scores is None else scores)
    votes = _shares(counts)
    floors = score_floors(_shares(train_counts), votes, scores)
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
    table = zip(scores, best, ends.min(0), ends.max(0), strict=True)
    return {score.name: Bounds(floors[score.name], *map(float, row)) for score, *row in table}


def score_floors(
    train_probs: np.ndarray, probs: np.ndarray, scores: Sequence[Score]
) -> dict[str, float | None]:
    """What the best constant prediction out of training items scores on these, by name."""
    values: dict[str, float | None] = {}
    for kind, constant in best_constants(train_probs).items():
        chosen = [score for score in scores if score.floor == kind]
        said = _values(chosen, np.broadcast_to(constant, probs.shape), probs)
        values |= {score.name: float(value) for score, value in zip(chosen, said, strict=True)}
    return {
        score.name: 0.0 if score.floor == "zero" else values.get(score.name) for score in scores
    }


def best_constants(train_probs: np.ndarray) -> dict[Floor, np.ndarray]:
    """The predictions [K] of every item that floors are made of, by their kind.

    >>> best_constants(np.array([[0.5, 0.5], [1.0, 0.0]]))["mean"]
    array([0.75, 0.25])
    """
    majority = np.bincount(train_probs.argmax(1), minlength=train_probs.shape[1])
    return {"mean": train_probs.mean(0), "majority": majority / len(train_probs)}


def split_half_scores(
    counts: np.ndarray, scores: Sequence[Score] | None = None, seed: int = 0
) -> dict[str, float]:
    """What one half of each item's annotators scores against the other half, as predictions; of
    items with two votes or more.

    >>> round(split_half_scores(np.array([[4, 0], [0, 4], [4, 0]]))["accuracy"], 1)
    1.0
    """
    counts = counts[counts.sum(1) > 1]
    _check_items(len(counts), "items have two votes or more")
    scores = list(registered().values() if scores is None else scores)
    rng = generator(seed, "split half")
    half, left, rest = np.zeros_like(counts), counts.sum(1) // 2, counts.sum(1)
    for label in range(counts.shape[1]):  # drawn without replacement, class by class
        rest = rest - counts[:, label]
        half[:, label] = rng.hypergeometric(counts[:, label], rest, left)
        left = left - half[:, label]
    said = _values(scores, _shares(half), _shares(counts - half))
    return {score.name: float(value) for score, value in zip(scores, said, strict=True)}


def _check_items(items: int, what: str) -> None:
    if items < LEAST_ITEMS:
        raise InputError(
            f"{items} {what}; what a score is worth cannot be said of fewer than {LEAST_ITEMS}."
        )


def _shares(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum(1, keepdims=True)


def _values(scores: Sequence[Score], probs: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """Each score of predictions against votes; NaN where it is not defined."""
    model, annotators = torch.from_numpy(np.array(probs)), torch.from_numpy(votes)
    values: dict[str, torch.Tensor] = {}
    for group in by_function(scores):
        values |= values_of(group, model, annotators)
    return np.array([float(values[score.name]) for score in scores])
