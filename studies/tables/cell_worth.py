"""What the scores of a cell are worth: floor, ceiling and skill, as means over its seeds."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metrics.worth import Bounds
from studies.analysis.collect import Record
from studies.tables.grid import NOTHING

NUMBERS = ("floor", "ceiling", "low", "high", "skill")


@dataclass(frozen=True)
class CellWorth:
    """Where scores lie between those of the best constant and of a model that knew every item's
    distribution; NaN where that is not known, or there is no such thing.
    """

    floor: float
    ceiling: float
    low: float  # the ceiling that votes allow, at least and at most
    high: float
    skill: float

    @property
    def room(self) -> float:
        """From ceiling to floor: what there is to be learned."""
        return self.floor - self.ceiling

    @property
    def ceiling_ends(self) -> tuple[float, float]:
        """The ceiling twice, or the interval in which it lies where votes are too few to tell."""
        floor = None if math.isnan(self.floor) else self.floor
        uncertain = Bounds(floor, self.ceiling, self.low, self.high).uncertain
        return (self.low, self.high) if uncertain else (self.ceiling, self.ceiling)

    def skill_with(self, gain: float) -> float:
        """The skill where scores are lower by so much (or higher, by a gain below 0).

        >>> CellWorth(floor=2.0, ceiling=1.0, low=1.0, high=1.0, skill=0.5).skill_with(0.25)
        0.75
        """
        return self.skill + gain / self.room if self.room else math.nan


def worth_of(records: Iterable[Record], metric: str) -> CellWorth | None:
    """What the runs' results say of a metric, as means; None where none of them says anything."""
    entries = [entry for record in records if (entry := worth_entry(record, metric))]
    if not entries:
        return None
    return CellWorth(*(_mean([entry.get(name) for entry in entries]) for name in NUMBERS))


def worth_entry(record: Record, metric: str) -> dict[str, Any]:
    """What a run's results say of one of its scores; runs of earlier versions say nothing."""
    return record.results.get("worth", {}).get(metric) or {}


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def span(low: float, high: float, digits: int) -> str:
    """One number, or two where they differ as shown.

    >>> span(0.40001, 0.40002, 4), span(0.4, 0.5, 2), span(math.nan, math.nan, 4)
    ('0.4000', '0.40 to 0.50', '–')
    """
    if math.isnan(low) or math.isnan(high):
        return NOTHING
    first, last = f"{low:.{digits}f}", f"{high:.{digits}f}"
    return first if first == last else f"{first} to {last}"


def shown_skill(skill: float) -> str:
    """
    >>> shown_skill(0.9312), shown_skill(-0.0004), shown_skill(math.nan)
    ('skill 93.1 %', 'skill 0.0 %', '')
    """
    return "" if math.isnan(skill) else f"skill {100 * skill + 0:.1f} %".replace("-0.0", "0.0")
