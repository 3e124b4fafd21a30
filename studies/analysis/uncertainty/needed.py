"""How many seeds, items or votes per item it would take to see a difference as large as the one
that was found.

It is what the parts of its variance say: more seeds lower what differs between seeds, more items
what items do, more votes what votes do to an item. Each is asked for alone, with the others as they
are; the difference is then found at 5 % (two-sided) in 80 of 100 studies.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import stdtrit

from studies.analysis.uncertainty.estimate import Estimate, degrees_of_freedom

POWER, LEVEL = 0.8, 0.05
MOST = 10**7  # what takes more is out of reach
NOTHING = "\N{EN DASH}"


@dataclass(frozen=True)
class Needed:
    """Each alone; infinite where no number is enough, NaN where it is not known."""

    seeds: float
    items: float
    votes: float

    def in_words(self) -> str:
        """
        >>> Needed(4, 1210, math.inf).in_words()
        'to see such a difference: 4 seeds, or 1,210 items; more votes alone would not do'
        """
        numbers = self._numbers()
        enough = [_count(name, n) for name, n in numbers.items() if math.isfinite(n)]
        never = [f"{name}s" for name, n in numbers.items() if math.isinf(n)]
        each = " per item" * math.isfinite(self.votes)
        lines = [f"to see such a difference: {', or '.join(enough)}{each}"] if enough else []
        if never:
            lines.append(f"more {' or '.join(never)} alone would not do")
        return "; ".join(lines)

    def in_short(self) -> str:
        """For a cell of a table.

        >>> Needed(4, 1210, math.inf).in_short(), Needed(4, math.nan, math.nan).in_short()
        ('4 seeds, 1,210 items or – votes', '4 seeds')
        """
        shown = [_count(name, n) for name, n in self._numbers().items() if not math.isnan(n)]
        return " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)

    def _numbers(self) -> dict[str, float]:
        return {"seed": self.seeds, "item": self.items, "vote": self.votes}


def _count(name: str, number: float) -> str:
    return (
        f"{number:,.0f} {name}{'s' * (number != 1)}" if number < math.inf else f"{NOTHING} {name}s"
    )


def needed(found: Estimate) -> Needed:
    """What it would take, of an estimated difference.

    >>> needed(Estimate(1.0, seeds=4, between=0.25)).seeds  # an SD of 1 between seeds
    10
    """
    if found.seeds < 2 or not found.mean:
        nothing = math.nan if found.seeds < 2 else math.inf
        return Needed(nothing, nothing if found.items else math.nan, math.nan)
    votes_known = found.items and not math.isnan(found.votes_shared + found.votes_per_item)
    return Needed(
        _least(2, lambda n: _seen(found, seeds=n)),
        _least(2, lambda n: _seen(found, items=n)) if found.items else math.nan,
        _least(1, lambda n: _seen(found, votes=n)) if votes_known else math.nan,
    )


def _least(start: int, enough: Callable[[int], bool]) -> float:
    if not enough(MOST):
        return math.inf
    numbers = range(start, MOST)
    return numbers[bisect_left(numbers, True, key=enough)]


def _seen(found: Estimate, seeds: int = 0, items: int = 0, votes: int = 0) -> bool:
    """Whether a study of this size would find the difference."""
    number = seeds or found.seeds
    fewer_seeds = found.seeds / number
    fewer_items = found.items / items if items else 1.0
    fewer_votes = found.votes_per_item / votes - 1 if votes else 0.0
    shared, crossed = found.shared, min(found.crossed, found.between)
    by_seed = found.between - crossed
    if votes:
        shared = max(shared + fewer_votes * min(found.votes_shared, shared), 0.0)
        crossed = max(crossed + fewer_votes * min(found.votes_crossed, crossed), 0.0)
    between = (by_seed + crossed * fewer_items) * fewer_seeds
    variance = between + shared * fewer_items
    if not variance:
        return True
    degrees = degrees_of_freedom(variance, between, number, found.noise * fewer_items**2)
    reach = float(stdtrit(degrees, 1 - LEVEL / 2) + stdtrit(degrees, POWER))
    return abs(found.mean) >= reach * math.sqrt(variance)
