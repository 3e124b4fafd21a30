"""Options that speak of a study's grids: their factors and levels, the metrics of their runs, and
what was published beside them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from studies.plan.published_numbers import published
from studies.schema.levels import Levels, chosen_levels
from studies.schema.options import Kind, Reading


@dataclass
class GridReading(Reading):
    """The grids that an entry can speak of."""

    grids: list[str] = field(default_factory=list)
    levels_of: Callable[[str], Levels] = lambda grid: {}
    paired: list[str] = field(default_factory=list)  # factors that means are taken over

    def check_metric(self, metric: Any, key: str) -> None:
        """Whether runs can have it, where that is known."""


class Grid(Kind):
    """A grid of the study: the first, unless another is named."""

    words = "a grid or selection of the study"

    def __init__(self, kind: str = ""):
        self.kind = kind

    def read(self, value: Any, key: str, reading: GridReading) -> str:
        """As it is."""
        reading.checks.one_of(value, reading.grids, key, self.kind)
        return value

    def default(self, reading: GridReading) -> str:
        """The first of the study."""
        return reading.grids[0]


class Where(Kind):
    """Which runs of the grid are looked at.

    Also sets `levels`, what is left of the levels of every factor, and how many seeds a mean has
    when all runs are finished.
    """

    words = "a level, or a list of levels, by factor"

    def read(self, value: Any, key: str, reading: GridReading) -> Levels:
        """With a list for every factor that it names."""
        levels = reading.levels_of(reading.values["grid"])
        where, left = chosen_levels(reading.checks, value, levels, key)
        reading.values["levels"] = left
        return where

    def default(self, reading: GridReading) -> Levels:
        """All runs."""
        return self.read({}, "", reading)


def planned_units(levels: Levels, paired: list[str]) -> int:
    """How many seeds a mean has when all runs are finished."""
    return math.prod(len(levels[factor]) for factor in paired if factor in levels)


class Factor(Kind):
    """A factor of the grid."""

    words = "a factor of the grid"

    def read(self, value: Any, key: str, reading: GridReading) -> str:
        """As it is."""
        grid, levels = reading.values["grid"], reading.values["levels"]
        reading.checks.one_of(value, levels, key, f"a factor of the grid {grid}")
        return value


class NumericFactor(Factor):
    """A factor whose levels are numbers, for an axis."""

    words = "a factor of the grid whose levels are numbers"

    def read(self, value: Any, key: str, reading: GridReading) -> str:
        """As it is."""
        super().read(value, key, reading)
        levels = reading.values["levels"][value]
        if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in levels):
            reading.checks.wrong(
                key,
                f"is {value}, whose levels are not all numbers; leave the others out with where",
            )
        return value


class Level(Kind):
    """A level of a factor that another option names."""

    def __init__(self, of: str = "rows"):
        self.of, self.words = of, f"a level of `{of}`"

    def read(self, value: Any, key: str, reading: GridReading) -> Any:
        """As it is."""
        factor = reading.values[self.of]
        reading.checks.one_of(value, reading.values["levels"][factor], key, f"a level of {factor}")
        return value


class Metric(Kind):
    """One metric of the runs."""

    words = "a metric"

    def read(self, value: Any, key: str, reading: GridReading) -> Any:
        """As it is."""
        reading.check_metric(value, key)
        return value


class MetricList(Kind):
    """Metrics of the runs."""

    words = "a list of metrics"

    def read(self, value: Any, key: str, reading: GridReading) -> Any:
        """As it is."""
        if not isinstance(value, list) or not value:
            reading.checks.wrong(key, f"must be {self.words}")
        for metric in value:
            reading.check_metric(metric, key)
        return value


class Metrics(Kind):
    """A metric of the runs, or several."""

    words = "a metric, or a list of metrics, one panel each"

    def read(self, value: Any, key: str, reading: GridReading) -> Any:
        """As it is."""
        if value == []:
            reading.checks.wrong(key, "is an empty list; it must name at least one metric")
        for metric in value if isinstance(value, list) else [value]:
            reading.check_metric(metric, key)
        return value


class Fact(Kind):
    """A fact that a paper published."""

    words = "an entry of `facts` in studies/published, such as `basins.loss_barrier`"

    def read(self, value: Any, key: str, reading: Reading) -> Any:
        """As it is."""
        reading.checks.one_of(value, published("facts"), key)
        return value


class PublishedTable(Kind):
    """A table that a paper published.

    Also sets `published_entry`, its numbers.
    """

    words = "an entry of `tables` in studies/published, such as `basins.table2`"

    def read(self, value: Any, key: str, reading: Reading) -> Any:
        """As it is."""
        reading.checks.one_of(value, published("tables"), key)
        reading.values["published_entry"] = published("tables")[value]
        return value


def check_published(part: Any, key: str, reading: Reading) -> None:
    """A published table must be of the shape of the table that it stands beside."""
    theirs, ours = part.published_entry, reading.values
    has = ""
    if part.published and theirs.get("metric") != ours.get("metric"):
        has = (
            f"its columns are levels, of the metric {theirs['metric']}"
            if "metric" in theirs
            else "its columns are metrics"
        )
    elif part.published and ("groups" in theirs) != ("groups" in ours):
        has = f"it has {'' if 'groups' in theirs else 'no '}groups"
    if has:
        reading.checks.wrong(
            f"{key}.published", f"is {part.published}, which does not fit this table: {has}"
        )
