"""By how much numbers of runs move with the items, and the votes, that they were tested on.

Items are dealt into groups by their number, so that all runs of a dataset share them. A run's
spread is the part that each group has in its score. Sums over groups of products of such parts are
variances and covariances, as the jackknife has them: seeds that share test items have covariances
above 0, and no number of seeds averages those away.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

GROUPS = 1000  # for scores that are means over items, whose parts cost nothing
COARSE = 50  # for all others, which are scored anew without each group; it divides GROUPS


@dataclass(frozen=True)
class RunSpread:
    """The part of each group of items in the score of one run."""

    items: np.ndarray  # [groups]
    votes: np.ndarray | None  # [groups]: the same when a group's votes alone are drawn anew
    index: np.ndarray  # the numbers of its test items, rising
    votes_per_item: float  # NaN where it is not known


@dataclass(frozen=True)
class Spread:
    """The same of one number per seed: scores, differences of scores, or means of such."""

    items: np.ndarray  # [seeds, groups]
    votes: np.ndarray | None
    number: int  # of different items that all seeds were tested on
    votes_per_item: float

    def scaled(self, factor: float) -> "Spread":
        """That of the numbers times a factor."""
        votes = None if self.votes is None else self.votes * factor
        return Spread(self.items * factor, votes, self.number, self.votes_per_item)


def spread_of(runs: Sequence[RunSpread]) -> Spread:
    """That of the scores of several seeds."""
    index = np.unique(np.concatenate([run.index for run in runs]))
    votes = [run.votes for run in runs if run.votes is not None]
    return Spread(
        np.stack([run.items for run in runs]),
        np.stack(votes) if len(votes) == len(runs) else None,
        len(index),
        float(np.mean([run.votes_per_item for run in runs])),
    )


def spread_of_differences(runs: Sequence[RunSpread], others: Sequence[RunSpread]) -> Spread | str:
    """That of the differences between runs that are pairs; or why there is none."""
    if any(
        not np.array_equal(a.index, b.index) or len(a.items) != len(b.items)
        for a, b in zip(runs, others, strict=True)
    ):
        return "runs of a seed were tested on different items"
    one, other = spread_of(runs), spread_of(others)
    votes = None if one.votes is None or other.votes is None else one.votes - other.votes
    return Spread(one.items - other.items, votes, one.number, one.votes_per_item)


def sum_of(spreads: Sequence[Spread]) -> Spread:
    """That of the sum of several numbers per seed, of the same or of different items."""
    groups = min(spread.items.shape[1] for spread in spreads)
    votes = [coarser(s.votes, groups) for s in spreads if s.votes is not None]
    return Spread(
        np.sum([coarser(spread.items, groups) for spread in spreads], 0),
        np.sum(votes, 0) if len(votes) == len(spreads) else None,
        min(spread.number for spread in spreads),
        float(np.mean([spread.votes_per_item for spread in spreads])),
    )


def coarser(parts: np.ndarray, groups: int) -> np.ndarray:
    """The parts of fewer groups, each of several of the finer ones.

    >>> coarser(np.array([[1.0, 2.0, 3.0, 4.0]]), 2)
    array([[4., 6.]])
    """
    return parts.reshape(len(parts), -1, groups).sum(1)


def group_of(index: np.ndarray, groups: int) -> np.ndarray:
    """The group of each item, a function of its number alone, so that it is the same in all runs.

    Neighbours, which often are alike, fall into different groups.

    >>> group_of(np.arange(6), 1000)
    array([  0, 779, 126, 906, 253, 601])
    """
    mixed = (index.astype(np.uint64) * np.uint64(2654435769)) % np.uint64(2**32) >> np.uint64(7)
    return ((mixed % np.uint64(GROUPS)) % np.uint64(groups)).astype(np.int64)
