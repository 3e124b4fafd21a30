"""What the numbers of a table are worth: floor and ceiling of its cells, and their seeds as one
model.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from metrics.registry import score_of
from studies.analysis.collect import Record
from studies.analysis.ensemble_score import EnsembleScore
from studies.analysis.ensembles import Ensembles, NoEnsemble
from studies.tables.cell_worth import worth_of
from studies.tables.tables import Cell, Table


def with_worth(tables: list[Table]) -> list[Table]:
    """The tables with all of it that their runs' results and predictions say, and why cells of
    scores have no ensemble.
    """
    ensembles = Ensembles()
    return [_with_worth(table, ensembles) for table in tables]


def _with_worth(table: Table, ensembles: Ensembles) -> Table:
    cells: dict[tuple[Any, Any], Cell] = {}
    absent: dict[tuple[str, ...], str] = {}  # by the runs of a cell, which several columns share
    for (row, column), cell in table.cells.items():
        metric, runs = table.spec.cell(column)[0], _runs(table, row, column)
        ensemble = None
        if cell.summary and score_of(metric)[0]:
            found = ensembles.of(runs)
            if isinstance(found, NoEnsemble):
                absent[tuple(record.run for record in runs)] = found.reason
            else:
                ensemble = EnsembleScore.of(found, metric, cell.summary.mean)
        cells[row, column] = replace(cell, worth=worth_of(runs, metric), ensemble=ensemble)
    return replace(table, cells=cells, no_ensemble=Counter(absent.values()))


def _runs(table: Table, row: Any, column: Any) -> list[Record]:
    wanted = {**table.spec.in_row(row), **table.spec.cell(column)[1]}.items()
    return [r for r in table.records if all(r.factors[name] == level for name, level in wanted)]
