"""What every kind of figure is made of: the options that the YAML may set, what it says, draws and
tabulates.

A kind is one file in `studies/figures/kinds`, with one class of this sort. Everything else follows:
it is read and checked by its options, drawn, captioned, written, and listed in the reference.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from studies.report.part import Part
from studies.schema.grid_options import Fact, Metric, Metrics
from studies.schema.options import ABSENT, option, options_of

if TYPE_CHECKING:  # options are checked without what they are drawn with
    from matplotlib.figure import Figure

    from studies.analysis.collect import Record
    from studies.analysis.data_of_runs import DataOfRuns
    from studies.tables.listing import Listing

# and what is to be said about it
DrawnFigure: TypeAlias = "tuple[Figure | None, list[str]]"


class Around(NamedTuple):
    """What a figure knows besides its own runs."""

    section: Any  # of the report: how levels are called, and at what scale the runs were
    paired: list[str]  # factors that means are taken over
    data: "DataOfRuns"


@dataclass(frozen=True)
class FigureSpec(Part):
    """A figure of a report; a kind has options of its own and draws."""

    kind: ClassVar[str] = ""  # as its file is called
    tables: ClassVar[tuple[str, ...]] = ()  # its listings are called NAME-TABLE
    # whether it shows items of a dataset, whose licence may not let them be copied
    shows_items: ClassVar[bool] = False
    # whether `compute` gives values for claims: TargetError says which
    for_claims: ClassVar[bool] = False

    published: str = option(Fact(), "what a paper says in its place, for the caption", default="")

    def __init_subclass__(cls):
        cls.kind = cls.__module__.rsplit(".", 1)[-1]

    def compute(self, records: "list[Record]", around: Around) -> Any:
        """What it draws and tabulates: its finished runs, unless a kind needs more."""
        return records

    def caption(self, records: "list[Record]", seeds: int) -> list[str]:
        """How to read it, whatever is found."""
        return []

    def draw(self, found: Any, around: Around) -> DrawnFigure:
        """The figure of what `compute` gave, or none, and what is to be said about it."""
        raise NotImplementedError(f"{type(self).__name__} draws nothing.")

    def listings(self, found: Any, caption: list[str], around: Around) -> list["Listing"]:
        """The numbers behind it, as tables; none unless a kind has some."""
        return []

    @property
    def metrics(self) -> list[str]:
        """What it shows of its option `metric`: one panel each."""
        metric: Any = getattr(self, "metric", [])
        return metric if isinstance(metric, list) else [metric]

    @property
    def run_metrics(self) -> list[str]:
        """The same, where these are metrics of results.json."""
        described = options_of(type(self)).get("metric")
        kind = described.metadata["kind"] if described else None
        return self.metrics if isinstance(kind, Metric | Metrics) else []

    @property
    def panel_levels(self) -> list[Any]:
        """The levels of the factor of its option `panels`, or the one panel that it has without."""
        factor: str = getattr(self, "panels", "")
        return self.levels[factor] if factor else [ABSENT]


def number_of_seeds(records: "list[Record]", paired: list[str]) -> int:
    """How many seeds (combinations of levels of the paired factors) the runs have."""
    seeds = {factor: len({r.factors.get(factor) for r in records}) for factor in paired}
    return math.prod(seeds.values()) if records else 0
