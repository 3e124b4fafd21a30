"""A mean over seeds with an interval and tests that know of everything that is random: seeds, items
and votes.

Another study would have other seeds, other items, and other votes on them. A bootstrap over five
seeds covers 85 % where it says 95 %, and knows nothing of items. So the variance of the mean is put
together of parts, each of which can be estimated well, and Student's t takes the rest:

- `between`: the variance of the seeds' numbers, over the number of seeds. It holds all that differs
  from seed to seed, also that one seed does well on one item and another on the next.
- `shared`: the covariance that seeds have because they share test items, and these items' votes.
  No number of seeds averages it away; seeds alone cannot see it.

The variance is their sum: the mean of n numbers of variance v and covariance c has
(v - c) / n + c, and their sample variance is v - c on average. Degrees of freedom are
Satterthwaite's. Items come with their votes, so that what items do holds what votes do.
tests/studies/analysis/uncertainty/test_coverage.py counts how often the truth lies inside.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from studies.analysis.statistics import summary
from studies.analysis.uncertainty.spread import Spread

Side = Literal["less", "greater", "two-sided"]


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and what its variance is made of."""

    mean: float
    seeds: int
    between: float  # variance of the mean, of what differs between seeds
    shared: float = 0.0  # of what they share; 0 as well where that is not known
    # of `between`, what items and seeds do together (more of either lowers it)
    crossed: float = 0.0
    votes_shared: float = math.nan  # of `shared`, what votes do; NaN where it is not known
    votes_crossed: float = math.nan  # of `crossed`
    noise: float = 0.0  # the variance of what is known of items, over its degrees of freedom
    items: int = 0  # that all seeds were tested on; 0 where runs keep no predictions
    votes_per_item: float = math.nan
    alone: str = ""  # why it is of seeds alone; empty where it is not

    @property
    def variance(self) -> float:
        """Of the mean."""
        return self.between + self.shared

    @property
    def degrees(self) -> float:
        """Of freedom."""
        return degrees_of_freedom(self.variance, self.between, self.seeds, self.noise)

    @property
    def over(self) -> str:
        """What is random, in words."""
        return "over seeds, items and votes" if self.items else "over seeds alone"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Where the mean of all seeds, items and votes lies; one seed has none."""
        if self.seeds < 2:
            return math.nan, math.nan
        reach = float(stdtrit(self.degrees, (1 + confidence) / 2)) * math.sqrt(self.variance)
        return self.mean - reach, self.mean + reach

    def p(self, side: Side, against: float = 0.0) -> float:
        """Of the t-test that the mean is less (greater, other) than a number."""
        if self.seeds < 2:
            return math.nan
        distance = self.mean - against
        if not self.variance:
            less, greater = float(distance >= 0), float(distance <= 0)
        else:
            t = distance / math.sqrt(self.variance)
            less, greater = float(stdtr(self.degrees, t)), float(stdtr(self.degrees, -t))
        return {"less": less, "greater": greater, "two-sided": min(2 * min(less, greater), 1.0)}[
            side
        ]


def estimate(values: ArrayLike, spread: Spread | str = "") -> Estimate:
    """The mean of one number per seed. `spread` is what these numbers owe to items and votes, or
    why that is not known.

    >>> alone = estimate([1.0, 2.0, 3.0, 4.0])
    >>> alone.mean, alone.degrees, [round(end, 3) for end in alone.interval()]
    (2.5, 3.0, [0.446, 4.554])
    """
    mean, sd, n = summary(values)
    between = sd**2 / n if n > 1 else math.nan
    if isinstance(spread, str):
        return Estimate(mean, n, between, alone=spread or "runs keep no predictions")
    own, shared, whole, groups = _covariance(spread.items)
    votes = _covariance(spread.votes) if spread.votes is not None else (math.nan,) * 4
    return Estimate(
        mean,
        n,
        between,
        shared=max(shared, 0.0),
        crossed=max(own - shared, 0.0) / n,
        votes_shared=max(votes[1], 0.0),
        votes_crossed=max(votes[0] - votes[1], 0.0) / n,
        noise=whole**2 / max(groups - 1, 1),
        items=spread.number,
        votes_per_item=spread.votes_per_item,
    )


def degrees_of_freedom(variance: float, between: float, seeds: int, noise: float) -> float:
    """Satterthwaite's: those of seeds where seeds make all the variance, else more.

    >>> degrees_of_freedom(2.0, 2.0, 5, 0.0), degrees_of_freedom(2.0, 1.0, 5, 0.0)
    (4.0, 16.0)
    """
    spread = between**2 / (seeds - 1) + noise if seeds > 1 else math.nan
    return variance**2 / spread if spread else float(seeds - 1)


def _covariance(parts: np.ndarray) -> tuple[float, float, float, int]:
    """Of parts [seeds, groups]: the seeds' mean variance, the mean covariance of two of them, the
    variance of their mean, and how many groups have items.
    """
    groups = max(int(np.any(parts != 0, 0).sum()), 2)
    centred = (parts - parts.sum(1, keepdims=True) / groups) * np.any(parts != 0, 0)
    table = centred @ centred.T * groups / (groups - 1)
    seeds, own = len(table), float(np.trace(table)) / len(table)
    shared = (float(table.sum()) - seeds * own) / max(seeds * (seeds - 1), 1)
    return own, shared, float(table.mean()), groups
