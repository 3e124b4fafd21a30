"""What a table shows besides its means: the seeds of each row as one model, and floor and ceiling
below each block of rows.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from metrics import registered
from studies.analysis.ensemble import is_score, score_name
from studies.tables.cell_worth import CellWorth, shown_skill, span, worth_entry
from studies.tables.ensemble_score import EnsembleScore, members_in_words
from studies.tables.grid import NOTHING, GridCell
from studies.tables.tables import Table

Ends = tuple[float, float]


def ensemble_row(table: Table, row: Any) -> list[GridCell]:
    """The label and the values of a row's ensembles; nothing where no cell has one."""
    scores = {column: table.cells[row, column].ensemble for column in table.columns}
    made = [score.ensemble for score in scores.values() if score]
    if not made:
        return []
    cells = [
        _ensemble_cell(score, table.measure(column).digits) for column, score in scores.items()
    ]
    return [GridCell(f"ensemble of {members_in_words(made)}"), *cells]


def _ensemble_cell(score: EnsembleScore | None, digits: int) -> GridCell:
    if score is None or math.isnan(score.value):
        return GridCell(NOTHING)
    hidden = score.ensemble.whole or math.isnan(score.alone)
    alone = "" if hidden else f"alone {score.alone:.{digits}f}"
    return GridCell(
        f"{score.value:.{digits}f}", notes={"skill": shown_skill(score.skill), "p": alone}
    )


def bound_rows(table: Table, rows: Sequence[Any]) -> list[list[GridCell]]:
    """Labels and values of the floor and the ceiling of a block of rows; nothing where no column
    is a score.
    """
    scores = [column for column in table.columns if is_score(table.spec.cell(column)[0])]
    floors = [c for c in scores if registered()[score_name(table.spec.cell(c)[0])].floor]
    result = []
    for name, having, ends in (
        ("floor", floors, lambda worth: (worth.floor, worth.floor)),
        ("ceiling", scores, lambda worth: worth.ceiling_ends),
    ):
        cells = [
            GridCell(_bound(table, rows, column, ends) if column in having else "")
            for column in table.columns
        ]
        result += [[GridCell(name), *cells]] if having else []
    return result


def _bound(
    table: Table, rows: Sequence[Any], column: Any, ends: Callable[[CellWorth], Ends]
) -> str:
    """A number, or two where rows have different ones."""
    found = [ends(worth) for row in rows if (worth := table.cells[row, column].worth)]
    known = [pair for pair in found if not math.isnan(sum(pair))]
    if not known:
        return NOTHING
    low, high = min(pair[0] for pair in known), max(pair[1] for pair in known)
    return span(low, high, table.measure(column).digits)


def worth_sentences(table: Table) -> list[str]:
    """What floor, ceiling, skill and ensembles are, and which of them are absent."""
    return [*_bound_sentences(table), *_ensemble_sentences(table)]


def _bound_sentences(table: Table) -> list[str]:
    scores = [m for column in table.columns if is_score(m := table.spec.cell(column)[0])]
    if not scores:
        return []
    messages = []
    if any(cell.worth for cell in table.cells.values()):
        messages.append(
            "Floor: the best constant prediction; ceiling: a model that knew every item's "
            "distribution, judged by votes as few as these (two numbers: votes are too few to "
            "tell); skill: where between the two a mean lies."
        )
    lacking = sum(not any(worth_entry(r, metric) for metric in scores) for r in table.records)
    if lacking:
        messages.append(
            f"Floor, ceiling and skill are not in the results of {lacking} of "
            f"{len(table.records)} runs; study evaluate adds them without training."
        )
    return messages


def _ensemble_sentences(table: Table) -> list[str]:
    made = [cell.ensemble.ensemble for cell in table.cells.values() if cell.ensemble]
    messages = []
    if made:
        messages.append("Ensemble: the mean prediction of the seeds of the row above, as one model.")
    if split := [ensemble for ensemble in made if not ensemble.whole]:
        items = sorted(len(ensemble.items) for ensemble in split)
        number = f"{items[0]:,}" + (f" to {items[-1]:,}" if items[0] < items[-1] else "")
        messages.append(
            "Seeds have test splits of their own: an item's mean is over the seeds that tested it, "
            f"on the {number} items that two or more did; alone: single seeds on the same items."
        )
    messages += [
        f"No ensemble in {number} cell{'s' * (number > 1)}: {reason}."
        for reason, number in table.no_ensemble.items()
    ]
    return messages
