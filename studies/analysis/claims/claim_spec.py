"""What a claim of a report asks for."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from studies.schema.grid_options import Fact
from studies.schema.options import ABSENT, Choice, Kind, Number, Text, is_needed, option, options_of

NEEDED = {  # by each test, besides where its values come from
    "less": {"level", "reference"},
    "greater": {"level", "reference"},
    "equal": {"level", "reference"},
    "above": {"level", "bound"},
    "below": {"level", "bound"},
    "family": {"levels", "direction"},
    "monotone": {"levels", "direction"},
}
OPTIONAL = {"family": {"reference", "bound", "columns"}, "equal": {"margin", "control"}}
DIRECTIONS = {"family": ("less", "greater"), "monotone": ("rising", "falling")}
SUPPORTED = {  # when each test supports a claim, for the reference
    "less": "the level is less than the reference, pair by pair (one-sided t-test over seeds, "
    "items and votes; Wilcoxon's over seeds alone)",
    "greater": "the level is greater than the reference, likewise",
    "equal": "the mean difference lies within the margin (two one-sided t-tests), and that of the "
    "control outside",
    "above": "the mean lies above the bound, with its 95 % interval",
    "below": "the mean lies below the bound, likewise",
    "family": "every level, in every column and metric, is less (greater) than the reference or "
    "the bound; one test for all cells of a kind, which differ in nothing but their level",
    "monotone": "the means are in the order of the levels (Page's trend test)",
}
# Where values come from: the entries that say so, those that may restrict it, and the tests that it
# is for.
SOURCES = {
    "figure": ({"figure"}, {"where"}, ("above", "below", "family")),
    "comparison": ({"comparison", "metric"}, set(), ("less", "greater", "equal", "above", "below")),
    "runs": ({"metric", "rows"}, {"grid", "where"}, tuple(NEEDED)),
}
BETWEEN = ("barrier", "barrier_reestimated")  # measures of two methods; the others are of one


class Margin(Number):
    """A number, or a share of the reference."""

    def __init__(self):
        super().__init__(0)
        self.words = "a number such as 0.02, or a share such as 5 %"

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """As it is."""
        return value if self.share(value) is not None else super().read(value, key, reading)

    @staticmethod
    def share(value: Any) -> float | None:
        """What share of the reference a margin is; None where it is a number.

        >>> Margin.share("5 %"), Margin.share(0.05)
        (0.05, None)
        """
        percent = re.fullmatch(r"(\d+(\.\d+)?) ?%", str(value))
        return float(percent[1]) / 100 if percent else None


class InWords(Kind):
    """What is checked together with other options, and described in words alone."""

    def __init__(self, words: str):
        self.words = words


@dataclass(frozen=True)
class ClaimSpec:
    """A paper's claim, tested on the runs at 5 %. [Claims](claims.md) says how.

    Values, one per seed, come from a `metric` of finished runs, from a `figure` (each seed's
    Spearman correlation), or from a `comparison` between networks. For the last, `metric` is cka,
    grad_cam or grad_cam_high within a level across seeds (tested by the jackknife over seeds), or
    barrier or barrier_reestimated `between` two levels. A barrier cannot be negative, so its bound
    should be a height that means something.
    """

    example: ClassVar[str] = """\
id: nll
claim: Multipass scores better.
paper: Table 2
test: less
metric: soft_nll
rows: data.delivery
where: {data.votes_per_item: 5}
level: Multipass
reference: SoftLabels
"""

    id: str = option(Text(), "names it in the table")
    claim: str = option(Text(), "in our own words")
    paper: str = option(Text(), "where the paper says so")
    test: str = option(Choice(*NEEDED), "the table below says what each needs")
    grid: str = option(InWords("a grid"), "whose runs; the first by default", default="")
    where: dict[str, list] = option(
        InWords("a level, or a list of levels, by factor"),
        "only these runs, or panels of the figure; a family takes all panels that it leaves",
        default={},
    )
    metric: Any = option(
        InWords("a metric; for a family also a list; of a comparison one of its measures"),
        "what is tested",
        default="",
    )
    rows: str = option(InWords("a factor of the grid"), "whose levels are meant", default="")
    level: Any = option(InWords("a level of `rows`"), "what the claim is about", default=ABSENT)
    levels: tuple = option(InWords("a list of levels"), "the same for several", default=())
    reference: Any = option(
        InWords("a level of `rows`"), "what it is compared with", default=ABSENT
    )
    columns: str = option(
        InWords("a factor of the grid"), "of a family: a cell for each of its levels", default=""
    )
    column_levels: tuple = (ABSENT,)
    direction: str = option(
        InWords("`less` or `greater` of a family, `rising` or `falling` of a trend"),
        "which way",
        default="",
    )
    margin: Any = option(
        Margin(),
        "how near is equal, where that is less than a tenth of what the reference is better by "
        "than the best constant (and 2 % of an NLL); needed where a measure has no such floor",
        default=None,
    )
    control: Any = option(
        InWords("a level of `rows`"),
        "which must lie outside of the margin, or finding equality says nothing",
        default=ABSENT,
    )
    bound: float = option(Number(), "what the mean is compared with", default=0.0)
    figure: str = option(
        InWords("a figure of kind `target_error`"), "whose correlations are tested", default=""
    )
    comparison: str = option(InWords("a comparison"), "whose measures are tested", default="")
    between: tuple = option(
        InWords("two levels"), "of the comparison, for barriers, instead of level", default=()
    )
    published: str = option(Fact(), "shown beside our numbers", default="")
    published_values: str = ""  # the numbers and their place, in words


ALWAYS = {name for name, described in options_of(ClaimSpec).items() if is_needed(described)}
