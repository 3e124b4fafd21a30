"""What the scores of a cell are worth: floor, ceiling and skill, from the means over its seeds."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metrics.worth import Bounds, skill_in_words
from studies.analysis.collect import Record
from studies.tables.grid import NOTHING

Ends = tuple[float, float]
ABOUT_BOUNDS = (
    "Floor: the best constant prediction; ceiling: a model that knew every item's distribution, "
    "judged by votes as few as these (two numbers where votes are too few to tell, or where rows "
    "differ); skill: where between the two a mean lies."
)


@dataclass(frozen=True)
class CellWorth:
    """Between what scores lie: that of the best constant, and that of a model which knew every
    item's distribution. NaN where one is not known, or where there is no such thing.
    """

    floor: float
    ceiling: float
    low: float  # the ceiling that votes allow, at least and at most
    high: float

    @property
    def room(self) -> float:
        """What there is to be learned: from floor to ceiling, or from 0 where there is no floor."""
        return abs((0.0 if math.isnan(self.floor) else self.floor) - self.ceiling)

    @property
    def floor_ends(self) -> Ends:
        """The floor twice: it is a number."""
        return self.floor, self.floor

    @property
    def ceiling_ends(self) -> Ends:
        """The ceiling twice, or the interval in which it lies where votes are too few to tell."""
        uncertain = self.bounds.uncertain
        return (self.low, self.high) if uncertain else (self.ceiling, self.ceiling)

    @property
    def bounds(self) -> Bounds:
        """The same of one score, with None for NaN."""
        numbers = (self.floor, self.ceiling, self.low, self.high)
        return Bounds(*(None if math.isnan(number) else number for number in numbers))

    def skill(self, score: float) -> float:
        """Where a score stands: 0 at the floor, 1 at the ceiling; NaN where one of them is not
        known, or where they may be the same.

        >>> CellWorth(floor=2.0, ceiling=1.0, low=1.0, high=1.0).skill(1.25)
        0.75
        """
        skill = self.bounds.skill(score)
        return math.nan if skill is None else skill

    def skill_in_words(self, score: float) -> str:
        """The skill in percent, an interval where the ceiling is one; empty where there is none.

        >>> CellWorth(floor=4.0, ceiling=1.0, low=0.0, high=2.0).skill_in_words(3.0)
        'skill 25 to 50 %'
        """
        return (
            "" if math.isnan(self.skill(score)) else f"skill {skill_in_words(self.bounds, score)}"
        )


def worth_of(records: Iterable[Record], metric: str) -> CellWorth | None:
    """What the results of those runs that have a finite value of a metric say of it, as means; None
    where none of them says anything.
    """
    entries = [
        entry
        for record in records
        if (entry := worth_entry(record, metric))
        and math.isfinite(record.metrics.get(metric, math.nan))
    ]
    if not entries:
        return None
    ends = ("floor", "ceiling", "low", "high")
    return CellWorth(*(_mean([entry.get(name) for entry in entries]) for name in ends))


def worth_entry(record: Record, metric: str) -> dict[str, Any]:
    """What a run's results say of one of its scores; runs of earlier versions say nothing."""
    return record.results.get("worth", {}).get(metric) or {}


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def shared_ends(ends: Iterable[Ends]) -> Ends | None:
    """The least and the largest of several numbers or intervals; None where none is known."""
    known = [pair for pair in ends if not math.isnan(sum(pair))]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def span(ends: Ends | None, digits: int) -> str:
    """One number, or two where they differ as shown.

    >>> span((0.40001, 0.40002), 4), span((0.4, 0.5), 2), span(None, 4)
    ('0.4000', '0.40 to 0.50', '–')
    """
    if ends is None or math.isnan(sum(ends)):
        return NOTHING
    first, last = (f"{end:.{digits}f}" for end in ends)
    return first if first == last else f"{first} to {last}"
