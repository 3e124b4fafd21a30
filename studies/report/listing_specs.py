"""What other tables of a report ask for: datasets, changes, mode shifts, comparisons."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from studies.plan.published_numbers import published
from studies.report.comparison_kinds import KINDS
from studies.report.part import Part
from studies.schema.grid_options import Factor, Level, MetricList, PublishedTable, check_published
from studies.schema.options import Kind, Number, option

QUANTILE = "of annotators' entropy, from which on an item is of high disagreement"


def one_dataset_each(part: Part, factor: str, key: str, reading: Any) -> None:
    """Every level of the factor must be one dataset, whatever else its runs differ in."""
    from studies.plan.comparable_runs import items_of

    result: dict[Any, Any] = {}
    for run in reading.runs:
        if run.is_in(part.grid, part.where):
            levels = run.factors[part.grid]
            items = result.setdefault(levels[factor], items_of(run))
            if items != items_of(run):
                reading.checks.wrong(
                    key,
                    f"is {factor}, but runs at its level {levels[factor]} differ in their "
                    "data; choose with where",
                )


@dataclass(frozen=True, kw_only=True)
class DatasetsSpec(Part):
    """Statistics of the data itself: items, classes, votes per item, entropy of votes; one row per
    level of a factor.
    """

    example: ClassVar[str] = "{name: table1, rows: dataset}\n"

    rows: str = option(Factor(), "each of its levels is one dataset")
    published: str = option(PublishedTable(), "shown beside ours", default="")
    published_entry: dict[str, Any] = field(default_factory=dict, repr=False)

    def check(self, key: str, reading: Any) -> None:
        """Of votes, which do not depend on how they are delivered."""
        check_published(self, key, reading)
        one_dataset_each(self, self.rows, f"{key}.rows", reading)


@dataclass(frozen=True, kw_only=True)
class ChangesSpec(Part):
    """By how much one level differs from another, in percent of it and with intervals: for each
    group, and on average over groups.
    """

    example: ClassVar[str] = """\
name: table4
groups: data.votes_per_item
rows: data.delivery
level: Multipass
reference: SoftLabels
columns: [kl, entropy_pearson]
"""

    groups: str = option(Factor(), "one row for each of its levels")
    rows: str = option(Factor(), "whose levels are compared")
    reference: Any = option(Level(), "what the percentages are of")
    level: Any = option(Level(), "what is compared with it")
    columns: Any = option(MetricList(), "what changes")
    published: str = option(PublishedTable(), "shown beside ours", default="")
    published_entry: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self):
        if self.rows:
            where = {**self.where, self.rows: [self.reference, self.level]}
            object.__setattr__(self, "where", where)

    def check(self, key: str, reading: Any) -> None:
        """Refuse what its options say together."""
        if self.level == self.reference:
            reading.checks.wrong(
                f"{key}.level", f"is {self.level}, as is reference; a change is between two levels"
            )
        check_published(self, key, reading)
        super().check(key, reading)

    @property
    def metrics(self) -> list[str]:
        """The metrics that it shows."""
        return self.columns


@dataclass(frozen=True, kw_only=True)
class ModeShiftSpec(Part):
    """How much of the gain in accuracy of each level over the reference is due to labels of another
    class: for each group, from predictions.parquet.
    """

    example: ClassVar[str] = """\
name: shift
groups: data.votes_per_item
rows: data.delivery
reference: SoftLabels
"""
    needs_predictions: ClassVar[bool] = True

    groups: str = option(Factor(), "a block of rows for each of its levels")
    rows: str = option(Factor(), "its rows")
    reference: Any = option(Level(), "what gains are over")


class FactsByFigure(Kind):
    """A published fact for each figure of a comparison."""

    words = f"facts of studies/published by figure: {', '.join(f'`{kind}`' for kind in KINDS)}"

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """As it is."""
        for kind, fact in reading.checks.mapping(value, key, set(KINDS)).items():
            reading.checks.one_of(fact, published("facts"), f"{key}.{kind}")
        return value


@dataclass(frozen=True, kw_only=True)
class ComparisonSpec(Part):
    """Finished networks compared with each other, from their checkpoints: a table, and the figures
    NAME-barrier, NAME-cka, NAME-grad_cam and NAME-grad_cam_high. What they came to is kept in
    representations.json until a checkpoint changes.
    """

    example: ClassVar[str] = """\
name: basins
rows: data.delivery
where: {data.votes_per_item: 5}
points: 11
published: {cka: basins.cka_within}
"""

    of_model: ClassVar[bool] = True

    rows: str = option(Factor(), "the methods")
    # the paper does not state it
    points: int = option(
        Number(3, whole=True), "of the line between two networks, ends included", default=11
    )
    quantile: float = option(Number(0, 1), QUANTILE, default=0.9)
    published: Any = option(FactsByFigure(), "for the captions", default={})
