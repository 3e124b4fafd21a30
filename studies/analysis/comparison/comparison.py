"""What comparing runs found: every number with its pair of runs and its items, and their means as
rows of a table.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from core.atomic_io import write_atomically
from core.read_json import without_nan
from studies.analysis.comparison.loss_barrier import LossLine
from studies.analysis.statistics import summary

Relation = Literal["same", "different", "all"]
RELATIONS: tuple[Relation, ...] = ("same", "different", "all")
NAMES = {
    "cka": "Linear CKA of penultimate features",
    "barrier": "Loss barrier (nats)",
    "barrier_reestimated": "Loss barrier, BatchNorm re-estimated (nats)",
    "grad_cam": "Grad-CAM stability (correlation)",
    "grad_cam_high": "Grad-CAM stability (correlation), high-entropy slice",
}


@dataclass(frozen=True)
class PairValue:
    """One number about two runs."""

    measure: str  # a key of NAMES
    methods: tuple[Any, Any]
    seeds: tuple[int, int]
    value: float  # NaN where it is not defined
    items: int  # that it is the mean over
    # items of the probe set that could not count, because a Grad-CAM map of theirs is the same at
    # all places
    left_out: int = 0


@dataclass(frozen=True)
class PairLine:
    """The loss between two runs of one seed."""

    methods: tuple[Any, Any]
    seed: int
    items: int
    line: LossLine


@dataclass(frozen=True)
class Row:
    """The mean of one measure over pairs of runs: of one method (both entries of `methods` are
    equal) or of two.
    """

    measure: str
    methods: tuple[Any, Any]
    seeds: Relation
    mean: float
    sd: float  # over pairs; NaN for a single one
    pairs: int
    undefined: int  # pairs left out, because their value is not defined
    items: tuple[int, int]  # fewest and most of any pair
    left_out: int  # items left out, over all pairs


@dataclass(frozen=True)
class Comparison:
    """All that `compare_runs` found, and what it depends on."""

    dataset: str
    simulated_annotators: bool
    network: str
    layer: str | None  # whose maps Grad-CAM looked at
    factor: str
    methods: list[Any]
    table_items: int  # of the whole dataset
    quantile: float  # of annotators' entropy: from there on, an item is in the high-entropy slice
    values: list[PairValue] = field(repr=False)
    lines: list[PairLine] = field(repr=False)
    notes: list[str]

    def select(self, measure: str, methods: tuple[Any, Any], seeds: Relation) -> list[PairValue]:
        """The values of one measure between two methods, of equal or of different seeds."""
        between = [v for v in self.values if (v.measure, v.methods) == (measure, methods)]
        return [v for v in between if seeds in _relations(v)]

    @property
    def rows(self) -> list[Row]:
        """A table's rows: measure by measure, and for each the methods by themselves before pairs
        of them.
        """
        groups: set[tuple[str, tuple[Any, Any], Relation]] = {
            (v.measure, v.methods, relation) for v in self.values for relation in _relations(v)
        }
        return [_row(*group, self.select(*group)) for group in sorted(groups, key=self._place)]

    @property
    def probe_set(self) -> str:
        """On which items runs were compared, in one sentence."""
        values = [v for v in self.values if v.measure == "cka"]
        sizes = {
            relation: [v.items for v in values if relation in _relations(v)]
            for relation in RELATIONS
        }
        shares = [f"{span(sizes['different'])} for runs of different seeds"]
        shares += [f"{span(sizes['same'])} for runs of one seed"] if sizes["same"] else []
        return (
            "Two runs are compared on the items that neither of them trained on: "
            f"{' and '.join(shares)}, of {self.table_items:,}."
        )

    def write(self, folder: Path) -> Path:
        """Everything as `representations.json`."""
        path = folder / "representations.json"
        rows = [asdict(row) for row in self.rows]
        content = {**asdict(self), "probe_set": self.probe_set, "rows": rows}
        write_atomically(path, json.dumps(without_nan(content), indent=1) + "\n")
        return path

    def _place(self, group: tuple[str, tuple[Any, Any], Relation]) -> tuple:
        measure, methods, relation = group
        first, second = (self.methods.index(method) for method in methods)
        return list(NAMES).index(measure), first != second, first, second, RELATIONS.index(relation)


def _relations(value: PairValue) -> list[Relation]:
    """The rows that a number counts for.

    Of two methods all pairs are shown together as well, for CKA.
    """
    relation: Relation = "same" if value.seeds[0] == value.seeds[1] else "different"
    across = value.methods[0] != value.methods[1]
    return [relation, "all"] if value.measure == "cka" and across else [relation]


def _row(measure: str, methods: tuple[Any, Any], seeds: Relation, values: list[PairValue]) -> Row:
    defined = [v.value for v in values if not math.isnan(v.value)]
    mean, sd, _ = summary(defined) if defined else (math.nan, math.nan, 0)
    items = [v.items for v in values]
    return Row(
        measure,
        methods,
        seeds,
        mean,
        sd,
        pairs=len(defined),
        undefined=len(values) - len(defined),
        items=(min(items), max(items)),
        left_out=sum(v.left_out for v in values),
    )


def span(numbers: Sequence[int]) -> str:
    """The least and the most of some numbers, or the one that they all are.

    >>> span([2000, 1950]), span([7, 7])
    ('1,950 to 2,000', '7')
    """
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
