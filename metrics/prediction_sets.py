"""Prediction sets: the classes that a drawn annotator would name, with a given probability.

Monte Carlo conformal prediction (Stutz et al. 2023, "Conformal prediction under ambiguous ground
truth"). Usual conformal prediction takes one label for each item, the majority, and so covers fewer
people than it says wherever they disagree. Here labels are drawn from each item's votes, several
times.
"""

import math
from dataclasses import dataclass

import numpy as np

from core.errors import InputError
from core.randomness import generator

DRAWS = 10  # labels of each item, as in the paper


def set_threshold(
    probs: np.ndarray, target_probs: np.ndarray, alpha: float, seed: int, draws: int = DRAWS
) -> float:
    """The least probability that a class needs to be in a prediction set, from items [n, K] that
    no model was trained on; 0 where so few items allow no other.

    The mean of a class's conformal p-values over draws must exceed alpha: that is the
    (floor(alpha · draws · (n + 1)) − draws + 1)-th smallest of all drawn labels' probabilities. A
    drawn vote of a new item then lies in its set with a probability of 1 − alpha up to what the
    draws of few items add: for one draw at least 1 − alpha, for more at least 1 − 2 alpha whatever
    the votes (a mean of p-values is one up to a factor of 2), and 1 − alpha as items grow.

    >>> people = np.array([[0.6, 0.4]] * 99)
    >>> set_threshold(np.array([[0.7, 0.3]] * 99), people, alpha=0.1, seed=0)
    0.3
    """
    check_options(alpha, draws)
    items = len(probs)
    labels = drawn_labels(target_probs, draws, seed)
    scores = np.take_along_axis(probs, labels, 1).ravel()
    place = math.floor(alpha * draws * (items + 1) + 1e-9) - draws + 1
    return float(np.partition(scores, place - 1)[place - 1]) if place > 0 else 0.0


def majority_threshold(probs: np.ndarray, target_probs: np.ndarray, alpha: float) -> float:
    """The same by usual conformal prediction: one label for each item, the most voted."""
    majority = np.eye(probs.shape[1])[target_probs.argmax(1)]
    return set_threshold(probs, majority, alpha, seed=0, draws=1)


def drawn_labels(target_probs: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Labels [n, draws], each drawn from the row's distribution."""
    ends = target_probs.cumsum(1)
    places = generator(seed, "conformal labels").random((len(ends), draws)) * ends[:, -1:]
    # class by class, so that memory does not grow with their number
    labels = np.zeros(places.shape, np.int64)
    for end in ends.T[:-1]:
        labels += places >= end[:, None]
    return labels


@dataclass(frozen=True)
class PredictionSets:
    """Which classes are in each item's set: all that have the threshold's probability.

    >>> sets = PredictionSets.of(np.array([[0.7, 0.3], [0.95, 0.05]]), threshold=0.2)
    >>> sets.size.tolist(), sets.coverage(np.array([[0.5, 0.5], [0.9, 0.1]])).tolist()
    ([2, 1], [1.0, 0.9])
    """

    members: np.ndarray  # bool [N, K]

    @classmethod
    def of(cls, probs: np.ndarray, threshold: float) -> "PredictionSets":
        """The sets of predictions [N, K]."""
        return cls(probs >= threshold)

    @property
    def size(self) -> np.ndarray:
        """Classes of each set."""
        return self.members.sum(1)

    def coverage(self, target_probs: np.ndarray) -> np.ndarray:
        """The share of each item's votes that its set holds: the probability that a drawn vote is
        covered.
        """
        return np.where(self.members, target_probs, 0.0).sum(1)


def check_options(alpha: float, draws: int) -> None:
    """Refuse what no threshold can be found for."""
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; it must lie between 0 and 1, such as 0.1 for 90 %.")
    if draws < 1:
        raise InputError(f"draws is {draws}; every item needs at least 1 drawn label.")
