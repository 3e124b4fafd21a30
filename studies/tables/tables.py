"""A table of a report as numbers: every cell with its seeds, its test against the reference row and
the published value. No formatting.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, cast

import numpy as np

from studies.analysis import statistics
from studies.analysis.collect import Record
from studies.analysis.ensemble_score import EnsembleScore
from studies.analysis.statistics import LARGEST, Alternative, Summary, Test
from studies.analysis.uncertainty.estimate import Estimate, estimate
from studies.analysis.uncertainty.item_spreads import ALONE, ItemSpreads
from studies.report.section import ABSENT, TableSpec
from studies.tables.cell_worth import CellWorth
from studies.tables.measures import Measure, measure


@dataclass(frozen=True)
class Cell:
    """One row in one column.

    Tests and differences are of this row against the reference row, paired by seed.
    """

    summary: Summary | None = None  # None: no finished run has a finite value
    dropped: int = 0  # runs left out because their value is NaN or infinite
    best: bool = False
    test: Test | None = None  # over seeds alone
    difference: Estimate | None = None  # with all that is random, where runs keep predictions
    p: float = math.nan  # of the difference, or where seeds alone are known of the test
    holm_p: float = math.nan
    agreement: tuple[int, int] | None = None
    effect_size: float = math.nan
    interval: tuple[float, float] = (math.nan, math.nan)  # 95 % of the mean difference
    published: dict[str, float] = field(default_factory=dict)
    worth: CellWorth | None = None  # None: its runs' results do not say
    ensemble: EnsembleScore | None = None  # of its seeds as one model


@dataclass(frozen=True)
class Table:
    """The cells of a table, by row and column."""

    spec: TableSpec
    rows: list[Any]  # levels; with groups, pairs (group, row)
    columns: list[Any]
    cells: dict[tuple[Any, Any], Cell]
    records: list[Record] = field(repr=False)
    # cells whose seeds are no ensemble, by the reason
    no_ensemble: Mapping[str, int] = field(default_factory=dict)

    def measure(self, column: Any) -> Measure:
        """How the metric of a column is called and read."""
        return measure(self.spec.cell(column)[0])


def build_table(
    spec: TableSpec, records: list[Record], paired: list[str], items: ItemSpreads | None = None
) -> Table:
    """Fill in a table from the finished runs of its grid.

    Runs that agree in the `paired` factors are a pair. `items` looks up what scores owe to items;
    without it seeds alone count as random.
    """
    records = spec.select(records)
    rows, columns = [row for block in spec.blocks for row in block], spec.column_keys
    runs = {key: _runs(spec, records, paired, *key) for key in product(rows, columns)}
    cells = {key: _cell(spec, runs, items, *key) for key in runs}
    if spec.family == "holm":
        adjusted = statistics.holm([cell.p for cell in cells.values()])
        cells = {
            key: replace(cell, holm_p=float(p))
            for (key, cell), p in zip(cells.items(), adjusted, strict=True)
        }
    for column, block in product(columns, spec.blocks):
        for row in _best(block, column, cells, spec):
            cells[row, column] = replace(cells[row, column], best=True)
    return Table(spec, rows, columns, cells, records)


def units(records: list[Record], metric: str, paired: list[str]) -> dict[tuple, float]:
    """A metric by unit (the levels of the paired factors, as a rule the seed).

    What is too large to be squared counts as infinite.
    """
    result = {
        tuple(r.factors.get(factor) for factor in paired): float(r.metrics[metric])
        for r in records
        if metric in r.metrics
    }
    return {
        unit: math.copysign(math.inf, value) if abs(value) > LARGEST else value
        for unit, value in result.items()
    }


def finite_units(
    records: list[Record], metric: str, wanted: dict[str, Any], paired: list[str]
) -> np.ndarray:
    """The finite values of a metric, one per unit, of the runs at the levels that are wanted."""
    chosen = [
        r for r in records if all(r.factors[factor] == level for factor, level in wanted.items())
    ]
    values = np.array(list(units(chosen, metric, paired).values()), dtype=np.float64)
    return values[np.isfinite(values)]


Runs = dict[tuple, tuple[float, Record]]  # by unit: the value of a metric, and the run that has it


def _runs(spec: TableSpec, records: list[Record], paired: list[str], row: Any, column: Any) -> Runs:
    metric, restriction = spec.cell(column)
    wanted = {**spec.in_row(row), **restriction}
    chosen = [
        r for r in records if all(r.factors[factor] == level for factor, level in wanted.items())
    ]
    values = units(chosen, metric, paired)
    by_unit = {tuple(r.factors.get(factor) for factor in paired): r for r in chosen}
    return {unit: (value, by_unit[unit]) for unit, value in values.items()}


def _cell(
    spec: TableSpec,
    runs: dict[tuple[Any, Any], Runs],
    items: ItemSpreads | None,
    row: Any,
    column: Any,
) -> Cell:
    own = {unit: value for unit, value in runs[row, column].items() if math.isfinite(value[0])}
    cell = Cell(
        summary=statistics.summary([value for value, _ in own.values()]) if own else None,
        dropped=len(runs[row, column]) - len(own),
        published=spec.published_cell(row, column),
    )
    reference = spec.reference_of(row)
    if spec.reference is ABSENT or row == reference:
        return cell
    other = {u: value for u, value in runs[reference, column].items() if math.isfinite(value[0])}
    common = [unit for unit in own if unit in other]
    if len(common) < 2:
        return cell
    a, b = np.array([(own[unit][0], other[unit][0]) for unit in common]).T
    metric, alternative = spec.cell(column)[0], cast(Alternative, spec.alternative)
    better = measure(metric).better
    runs_of = [[side[unit][1] for unit in common] for side in (own, other)]
    spread = items.of_differences(runs_of[0], runs_of[1], metric) if items else ALONE
    difference = estimate(a - b, spread)
    test = paired_test(spec.test, a, b, alternative)
    return replace(
        cell,
        test=test,
        difference=difference,
        p=difference.p(alternative) if difference.items else test.p,
        agreement=statistics.direction_agreement(a, b, better) if better else None,
        effect_size=statistics.effect_size(a, b),
        interval=difference.interval(),
    )


def paired_test(test: str, a: np.ndarray, b: np.ndarray, alternative: Alternative) -> Test:
    """The test that a table asks for.

    >>> # half of the two-sided p: a is less
    >>> paired_test("t", np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]), "less").p
    0.037...
    """
    if test == "wilcoxon":
        return statistics.paired_wilcoxon(a, b, alternative)
    result = statistics.paired_t(a, b)
    if alternative == "two-sided":
        return result
    favoured = result.statistic <= 0 if alternative == "less" else result.statistic >= 0
    return result._replace(p=result.p / 2 if favoured else 1 - result.p / 2)


def _best(
    rows: list[Any], column: Any, cells: dict[tuple[Any, Any], Cell], spec: TableSpec
) -> list[Any]:
    """The rows whose mean is best; none where nothing competes or neither direction is better."""
    better = measure(spec.cell(column)[0]).better
    means = {row: summary.mean for row in rows if (summary := cells[row, column].summary)}
    if better is None or len(set(means.values())) < 2:
        return []
    best = min(means.values()) if better == "lower" else max(means.values())
    return [row for row, mean in means.items() if mean == best]
