"""What the `report` section of a study's YAML asks for, as values.

`studies.report.report` says what its entries mean.
"""

from dataclasses import dataclass, field
from typing import Any

from studies.analysis.collect import Record

ABSENT: Any = object()  # null may be a level


@dataclass(frozen=True)
class Kind:
    """What a kind of figure takes besides name, title, grid and where."""

    needed: frozenset[str]
    optional: frozenset[str] = frozenset()
    shows_items: bool = (
        False  # pictures or texts of a dataset, whose licence may not let them be copied
    )


def _kind(*needed: str, optional: tuple[str, ...] = (), shows_items: bool = False) -> Kind:
    return Kind(frozenset(needed), frozenset(optional), shows_items)


KINDS = {
    "points": _kind("metric", "rows"),
    "lines": _kind("metric", "x", "lines"),
    "curves": _kind("rows"),
    "history": _kind("metric", "lines", optional=("panels",)),
    "target_error": _kind(
        "rows", "reference", optional=("panels", "distance", "items", "quantile", "bins")
    ),
    "data_map": _kind("panels", optional=("last",)),
    "entropy_histogram": _kind("panels", optional=("bins",)),
    "examples": _kind("rows", optional=("panels", "choose", "number"), shows_items=True),
}


@dataclass(frozen=True)
class Part:
    """What tables, figures and comparisons have in common: the runs that they show."""

    name: str
    title: str = ""
    grid: str = ""
    where: dict[str, list] = field(default_factory=dict)
    rows: str = ""
    # of every factor, after `where`
    levels: dict[str, list] = field(default_factory=dict, repr=False)
    planned_units: int = 1  # how many seeds a mean has when all runs are finished
    # of a table an entry of `tables` in studies/published; of a figure one of `facts`; of a
    # comparison these by kind
    published: Any = ""

    def select(self, records: list[Record]) -> list[Record]:
        return [
            r
            for r in records
            if all(r.factors[factor] in levels for factor, levels in self.where.items())
        ]


@dataclass(frozen=True)
class TableSpec(Part):
    metric: str = ""
    columns: Any = None  # a list of metrics, or one factor
    groups: str = ""  # a factor: a block of rows for each of its levels
    reference: Any = ABSENT
    test: str = "wilcoxon"
    alternative: str = "two-sided"
    family: str = ""
    published_entry: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def pivot(self) -> bool:
        return isinstance(self.columns, str)

    def cell(self, column: Any) -> tuple[str, dict[str, Any]]:
        """The metric that a column shows, and the levels that it is restricted to."""
        return (self.metric, {self.columns: column}) if self.pivot else (column, {})

    @property
    def column_keys(self) -> list[Any]:
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
        return (row[0], self.reference) if self.groups else self.reference

    def published_cell(self, row: Any, column: Any) -> dict[str, float]:
        result = self.published_entry.get("cells", {})
        for level in (*self.in_row(row).values(), column):
            result = result.get(level, {})
        return result


@dataclass(frozen=True)
class FigureSpec(Part):
    kind: str = ""
    metric: Any = ""  # one, or a list, one panel each; for history, columns of history.json
    x: str = ""
    lines: str = ""
    reference: Any = ABSENT
    panels: str = ""
    distance: str = "js"
    items: str = "all"
    # of annotators' entropy, from where an item is of high disagreement; the paper does not state
    # it
    quantile: float = 0.9
    # of equal mass, after one for targets without error; the paper does not state them. For
    # histograms: of equal width
    bins: int = 6
    choose: str = "disagreement"  # how examples are chosen; see `studies.figures.examples`
    number: int = 3  # of examples in each panel
    last: int | None = None  # epochs of a data map; None for all

    @property
    def metrics(self) -> list[str]:
        return self.metric if isinstance(self.metric, list) else [self.metric]

    @property
    def panel_levels(self) -> list[Any]:
        return self.levels[self.panels] if self.panels else [ABSENT]


@dataclass(frozen=True)
class DatasetsSpec(Part):
    """Statistics of the data itself, one row per level of `rows`."""

    published_entry: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ChangesSpec(Part):
    """By how much a level of `rows` differs from the reference, in percent of it: for each group,
    and on average over groups.
    """

    groups: str = ""
    columns: Any = None  # a list of metrics
    level: Any = ABSENT
    reference: Any = ABSENT
    published_entry: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ModeShiftSpec(Part):
    """How much of the gain in accuracy of each level of `rows` over the reference is due to labels
    of another class: for each group.
    """

    groups: str = ""
    reference: Any = ABSENT


@dataclass(frozen=True)
class ComparisonSpec(Part):
    """Of finished networks with each other, from their checkpoints."""

    points: int = 11  # of the line between two networks, ends included; the paper does not state it
    quantile: float = 0.9  # as in FigureSpec


@dataclass(frozen=True)
class ClaimSpec:
    """One claim and its test. `studies.analysis.claims.claims` says what each entry means."""

    id: str
    claim: str
    paper: str
    test: str
    grid: str = ""
    where: dict[str, list] = field(default_factory=dict)
    metric: Any = ""  # one; for a family also a list
    rows: str = ""
    level: Any = ABSENT
    levels: tuple = ()
    reference: Any = ABSENT
    columns: str = ""
    column_levels: tuple = (ABSENT,)
    direction: str = ""
    margin: Any = 0.0  # a number, or a share such as 5 %
    bound: float = 0.0
    figure: str = ""
    comparison: str = ""
    between: tuple = ()
    published: str = ""
    published_values: str = ""  # the numbers and their place, in words


@dataclass(frozen=True)
class Section:
    tables: list[TableSpec]
    figures: list[FigureSpec]
    comparisons: list[ComparisonSpec] = field(default_factory=list)
    claims: list[ClaimSpec] = field(default_factory=list)
    scale: str = ""
    comment: str = ""
    labels: dict[Any, str] = field(default_factory=dict)
    datasets: list[DatasetsSpec] = field(default_factory=list)
    changes: list[ChangesSpec] = field(default_factory=list)
    mode_shifts: list[ModeShiftSpec] = field(default_factory=list)

    def label(self, level: Any) -> str:
        return str(self.labels.get(level, level))
