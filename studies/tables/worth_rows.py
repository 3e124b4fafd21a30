"""What a table shows besides its means: the seeds of each row as one model, and floor and ceiling
below each block of rows.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metrics.registry import score_of
from studies.analysis.ensemble_score import members_in_words
from studies.tables.cell_worth import ABOUT_BOUNDS, CellWorth, Ends, shared_ends, span, worth_entry
from studies.tables.grid import NOTHING, GridCell
from studies.tables.tables import Cell, Table

WORTH_COLUMNS = (  # of a table's CSV
    *("floor", "ceiling", "ceiling_low", "ceiling_high", "skill"),
    *("ensemble", "ensemble_alone", "ensemble_skill", "ensemble_items"),
    *("ensemble_members_least", "ensemble_members_most"),
)


def with_skill(shown: GridCell, cell: Cell) -> GridCell:
    """A cell with its skill as the first of the notes below its mean."""
    summary, worth = cell.summary, cell.worth
    skill = worth.skill_in_words(summary.mean) if worth and summary else ""
    return replace(shown, notes={"skill": skill, **shown.notes})


def ensemble_row(table: Table, row: Any) -> list[GridCell]:
    """The label and the values of a row's ensembles; nothing where no cell has one."""
    cells = {column: table.cells[row, column] for column in table.columns}
    made = [cell.ensemble.ensemble for cell in cells.values() if cell.ensemble]
    if not made:
        return []
    label = GridCell(f"ensemble of {members_in_words(made)}", minor=True)
    return [label, *(_ensemble(cell, table.measure(c).digits) for c, cell in cells.items())]


def _ensemble(cell: Cell, digits: int) -> GridCell:
    if cell.ensemble is None or math.isnan(cell.ensemble.value):
        return GridCell(NOTHING)
    score, notes = cell.ensemble, {}
    if cell.worth:
        notes["skill"] = cell.worth.skill_in_words(score.on_all_items)
    if not score.ensemble.whole and not math.isnan(score.alone):
        notes["p"] = f"alone {score.alone:.{digits}f}"
    return GridCell(f"{score.value:.{digits}f}", notes=notes)


def bound_rows(table: Table, rows: Sequence[Any]) -> list[list[GridCell]]:
    """Labels and values of the floor and the ceiling of a block of rows; nothing where no column
    is a score.
    """
    scores = [
        column
        for column in table.columns
        if score_of(table.spec.cell(column)[0])[0] or _worths(table, rows, column)
    ]
    floors = [column for column in scores if _has_floor(table, rows, column)]
    result = []
    for name, having in {"floor": floors, "ceiling": scores}.items():
        cells = [
            GridCell(_bound(table, rows, column, name) if column in having else "")
            for column in table.columns
        ]
        result += [[GridCell(name), *cells]] if having else []
    return result


def _bound(table: Table, rows: Sequence[Any], column: Any, bound: str) -> str:
    return span(bounds_of(table, rows, column, bound), table.measure(column).digits)


def bounds_of(table: Table, rows: Sequence[Any], column: Any, bound: str) -> Ends | None:
    """The floor or the ceiling of some rows: two numbers that differ where rows have different
    ones, or where votes are too few for one; None where it is not known.
    """
    return shared_ends(getattr(worth, f"{bound}_ends") for worth in _worths(table, rows, column))


def _worths(table: Table, rows: Sequence[Any], column: Any) -> list[CellWorth]:
    return [worth for row in rows if (worth := table.cells[row, column].worth)]


def _has_floor(table: Table, rows: Sequence[Any], column: Any) -> bool:
    """Of what runs say, or as the registry has it where they are of an earlier version."""
    if worths := _worths(table, rows, column):
        return any(not math.isnan(worth.floor) for worth in worths)
    score, _ = score_of(table.spec.cell(column)[0])
    return score is not None and score.floor is not None


def worth_numbers(cell: Cell) -> dict[str, float]:
    """All of it with every digit, by column of the CSV."""
    numbers: dict[str, float] = {}
    if worth := cell.worth:
        mean = cell.summary.mean if cell.summary else math.nan
        numbers = {"floor": worth.floor, "ceiling": worth.ceiling, "skill": worth.skill(mean)}
        numbers |= {"ceiling_low": worth.low, "ceiling_high": worth.high}
    if score := cell.ensemble:
        numbers |= {"ensemble": score.value, "ensemble_alone": score.alone}
        numbers["ensemble_items"] = len(score.ensemble.items)
        numbers["ensemble_members_least"] = int(score.ensemble.tested.min())
        numbers["ensemble_members_most"] = int(score.ensemble.tested.max())
        if worth:
            numbers["ensemble_skill"] = worth.skill(score.on_all_items)
    return numbers


def worth_sentences(table: Table) -> list[str]:
    """What floor, ceiling, skill and ensembles are, and which of them are absent."""
    return [*_bound_sentences(table), *_ensemble_sentences(table)]


def _bound_sentences(table: Table) -> list[str]:
    scores = [m for column in table.columns if score_of(m := table.spec.cell(column)[0])[0]]
    messages = []
    if any(cell.worth for cell in table.cells.values()):
        messages.append(ABOUT_BOUNDS)
    lacking = sum(not any(worth_entry(r, metric) for metric in scores) for r in table.records)
    if scores and lacking:
        messages.append(
            f"Floor, ceiling and skill are not in the results of {lacking} of "
            f"{len(table.records)} runs; study evaluate adds them without training."
        )
    return messages


def _ensemble_sentences(table: Table) -> list[str]:
    made = [cell.ensemble.ensemble for cell in table.cells.values() if cell.ensemble]
    messages = []
    if made:
        messages.append(
            "Ensemble: the mean prediction of the seeds of the row above, as one model."
        )
    if split := [ensemble for ensemble in made if not ensemble.whole]:
        items = sorted(len(ensemble.items) for ensemble in split)
        number = f"{items[0]:,}" + (f" to {items[-1]:,}" if items[0] < items[-1] else "")
        messages.append(
            "Seeds have test splits of their own: an item's mean is over the seeds that tested it, "
            f"on the {number} items that two or more did; alone: single seeds on the same items. "
            "The skill of an ensemble is that of its seeds with what it gains over them there."
        )
    messages += [
        f"No ensemble in {number} cell{'s' * (number > 1)}: {reason}."
        for reason, number in table.no_ensemble.items()
    ]
    return messages
