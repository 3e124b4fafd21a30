"""What a table of a report asks for."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from studies.report.part import Part
from studies.schema.grid_options import (
    Factor,
    Level,
    Metric,
    MetricList,
    PublishedTable,
    check_published,
)
from studies.schema.options import ABSENT, Choice, option


class Columns(MetricList):
    """Metrics, or the levels of a factor."""

    words = "a list of metrics or a factor of the grid"

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """As it is."""
        if isinstance(value, str):
            reading.checks.one_of(value, reading.values["levels"], key, self.words)
            return value
        return super().read(value, key, reading)


class OneMetric(Metric):
    """What a table shows whose columns are a factor."""

    words = "a metric, where `columns` is a factor"

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """As it is."""
        if not isinstance(reading.values["columns"], str):
            reading.checks.wrong(key, "is only for a table whose columns are a factor")
        return super().read(value, key, reading)


@dataclass(frozen=True, kw_only=True)
class TableSpec(Part):
    """Means over seeds, one row per level of a factor."""

    example: ClassVar[str] = """\
name: sweep
title: Soft NLL by votes per item
rows: data.delivery
columns: data.votes_per_item
metric: soft_nll
reference: SoftLabels
test: wilcoxon
family: holm
"""

    rows: str = option(Factor(), "its rows")
    groups: str = option(
        Factor(),
        "a block of rows for each of its levels, with its own tests and its own best",
        default="",
    )
    columns: Any = option(Columns(), "its columns")
    metric: str = option(OneMetric(), "what is shown", default="")
    reference: Any = option(
        Level(), "the row that the others are tested against, pair by pair", default=ABSENT
    )
    test: str = option(Choice("wilcoxon", "t"), "of each row against it", default="wilcoxon")
    alternative: str = option(
        Choice("two-sided", "less", "greater"),
        "what the row is, compared with the reference",
        default="two-sided",
    )
    family: str = option(Choice("holm"), "adjust p over all cells of the table", default="")
    published: str = option(
        PublishedTable(), "shown beside ours; with groups, one that has groups", default=""
    )
    published_entry: dict[str, Any] = field(default_factory=dict, repr=False)

    def check(self, key: str, reading: Any) -> None:
        """Refuse what its options say together."""
        checks, given = reading.checks, reading.values
        if self.pivot and not self.metric:
            checks.wrong(
                f"{key}.metric", "is missing; a table whose columns are a factor shows one metric"
            )
        for name in ("test", "alternative", "family"):
            if name in given and self.reference is ABSENT:
                checks.wrong(
                    f"{key}.{name}", "needs a reference, the row that the others are tested against"
                )
        shown = self.factors
        if len(set(shown)) < len(shown):
            checks.wrong(
                key,
                f"shows {max(shown, key=shown.count)} twice; rows, groups and columns must be "
                "different factors",
            )
        check_published(self, key, reading)
        super().check(key, reading)

    @property
    def factors(self) -> list[str]:
        """Those of its rows, its groups and its columns."""
        return super().factors + [self.columns] * self.pivot

    @property
    def metrics(self) -> list[str]:
        """The metrics that it shows."""
        return [self.metric] if self.pivot else self.columns

    @property
    def pivot(self) -> bool:
        """Whether its columns are the levels of a factor."""
        return isinstance(self.columns, str)

    def cell(self, column: Any) -> tuple[str, dict[str, Any]]:
        """The metric that a column shows, and the levels that it is restricted to."""
        return (self.metric, {self.columns: column}) if self.pivot else (column, {})

    @property
    def column_keys(self) -> list[Any]:
        """What its columns are: levels, or metrics."""
        return self.levels[self.columns] if self.pivot else self.columns

    @property
    def blocks(self) -> list[list[Any]]:
        """The rows that are compared with each other: all of them, or those of one group, which are
        pairs (group, row).
        """
        rows = self.levels[self.rows]
        return (
            [[(group, row) for row in rows] for group in self.levels[self.groups]]
            if self.groups
            else [rows]
        )

    def in_row(self, row: Any) -> dict[str, Any]:
        """The levels that a row is restricted to."""
        return {self.groups: row[0], self.rows: row[1]} if self.groups else {self.rows: row}

    def reference_of(self, row: Any) -> Any:
        """The row that a row is tested against."""
        return (row[0], self.reference) if self.groups else self.reference

    def published_cell(self, row: Any, column: Any) -> dict[str, float]:
        """What a paper has in a cell; nothing where it has none."""
        result = self.published_entry.get("cells", {})
        for level in (*self.in_row(row).values(), column):
            result = result.get(level, {})
        return result
