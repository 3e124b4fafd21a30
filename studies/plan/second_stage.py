"""The second stage of a study: the cells of a grid that win by validation loss, and the runs that
they are run again as.

A combination is decided when every one of its cells has ended. Cells that diverged cannot win. Of
equal losses, the cell wins whose levels come first in the YAML, factor by factor in its order: with
`trainer.max_epochs: [10, 15, 20]` the shortest of three runs that share their best epoch. The
second stage's runs are known when all combinations of all selections are decided, so that how they
are cut into packs depends on the study alone.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from callbacks.results import read_failure, read_results
from core.errors import InputError
from studies.plan.selection import Selection
from studies.plan.study import Run, Study
from studies.schema.calibrate_factor import split_off

SHOWN = 3  # names of missing runs in a sentence


@dataclass(frozen=True)
class Choice:
    """What one combination of a selection came to."""

    levels: dict[str, Any]  # of the factors in for_each
    cells: int
    winner: Run | None = None  # None where it is not decided yet, or where every cell diverged
    loss: float = math.nan
    diverged: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SecondStage:
    """What selections chose, and the runs that follow from it."""

    choices: dict[str, list[Choice]]  # by selection
    # of all selections, once every one is decided; those that are cells of a grid as well are the
    # same objects
    runs: list[Run]

    def waiting(self, selection: str) -> str:
        """What a selection still waits for, in words; empty where it is decided."""
        missing = [name for choice in self.choices[selection] for name in choice.missing]
        if not missing:
            return ""
        listed = ", ".join(missing[:SHOWN]) + f" and {len(missing) - SHOWN} more" * (
            len(missing) > SHOWN
        )
        cells = sum(choice.cells for choice in self.choices[selection])
        return (
            f"{selection} is not decided: {len(missing)} of the {cells} runs that it is chosen "
            f"from are missing ({listed})"
        )


def second_stage(study: Study, first: list[Run], runs: Path) -> SecondStage:
    """Choose from what is finished of the first stage.

    Runs that a selection has in common with a grid learn of their place in it.
    """
    known = {run.name: run for run in first}
    chosen: dict[str, Run] = {}
    choices = {
        name: choose(selection, study, first, runs) for name, selection in study.selections.items()
    }
    if any(choice.missing for made in choices.values() for choice in made):
        return SecondStage(choices, [])
    for name, made in choices.items():
        for winner in (choice.winner for choice in made if choice.winner):
            for again, config, levels in study.rerun_cells(study.selections[name], winner):
                run = chosen.setdefault(again, known.get(again) or Run(again, config, {}))
                run.merge_callbacks(config, study.path)
                run.factors[name] = levels
                if calibrate := split_off(study.selections[name].then)[1]:
                    run.calibrate[name] = calibrate
    return SecondStage(choices, list(chosen.values()))


def choose(selection: Selection, study: Study, first: list[Run], runs: Path) -> list[Choice]:
    """The winner of each combination, in the order of the YAML."""
    places = {
        factor: {level: place for place, level in enumerate(levels)}
        for factor, levels in study.levels(selection.grid).items()
    }

    def place(run: Run) -> tuple[int, ...]:
        return tuple(places[factor][level] for factor, level in run.factors[selection.grid].items())

    combinations: dict[tuple, list[Run]] = {}
    for run in sorted((run for run in first if selection.grid in run.factors), key=place):
        levels = run.factors[selection.grid]
        if all(levels[factor] in wanted for factor, wanted in selection.where.items()):
            combinations.setdefault(
                tuple(levels[factor] for factor in selection.for_each), []
            ).append(run)
    order = sorted(
        combinations,
        key=lambda levels: tuple(
            places[f][level] for f, level in zip(selection.for_each, levels, strict=True)
        ),
    )
    return [
        _choice(
            selection,
            dict(zip(selection.for_each, levels, strict=True)),
            combinations[levels],
            runs,
        )
        for levels in order
    ]


def _choice(selection: Selection, levels: dict[str, Any], cells: list[Run], runs: Path) -> Choice:
    losses, missing, diverged = {}, [], []
    for run in cells:
        results = read_results(run.folder(runs))
        if results is None:
            (missing if read_failure(run.folder(runs)) is None else diverged).append(run.name)
            continue
        if results.get("val_is_test"):
            raise InputError(
                f"selections.{selection.name}: {run.name} was validated on its test items, so the "
                f"least {selection.by} would be chosen by the test set; "
                "choose on data with validation items of its own."
            )
        if selection.by not in results["metrics"]:
            raise InputError(
                f"selections.{selection.name}: {run.name} has no {selection.by} in its "
                "results.json; delete that folder to run it again."
            )
        loss = results["metrics"][selection.by]
        if math.isfinite(loss):
            losses[run.name] = loss
        else:
            diverged.append(run.name)
    if missing or not losses:
        return Choice(levels, len(cells), diverged=diverged, missing=missing)
    # the first of equals
    winner = min((run for run in cells if run.name in losses), key=lambda run: losses[run.name])
    return Choice(levels, len(cells), winner, losses[winner.name], diverged)
