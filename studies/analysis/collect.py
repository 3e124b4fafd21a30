"""The finished runs of a study, read from their `results.json`.

What is cut short, or has no metrics, is not finished.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from callbacks.results import read_results
from studies.analysis.left_out import why_unfinished
from studies.plan.second_stage import SecondStage, second_stage
from studies.plan.study import Run, Study
from studies.schema.calibrate_factor import CALIBRATE, as_calibrated
from studies.schema.levels import Levels


@dataclass(frozen=True)
class Record:
    """A finished run as one grid sees it: its levels of the grid's factors, and its numbers."""

    run: str
    folder: Path
    factors: dict[str, Any]
    metrics: dict[str, float]
    results: dict[str, Any] = field(repr=False)
    config: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Collection:
    """Every run that a study plans, and the results of those that are finished.

    Planning and reading happen once for all grids.
    """

    planned: list[Run]
    finished: dict[str, Record]  # run -> record; its factors are those of all grids together
    # what selections chose, and the runs that followed
    stage: SecondStage = field(default_factory=lambda: SecondStage({}, []))
    selected: dict[str, Levels] = field(default_factory=dict)  # of the factors of selections
    missing: dict[str, str] = field(default_factory=dict)  # run -> why it is not finished

    @classmethod
    def of(cls, study: Study, runs: Path) -> "Collection":
        """Plan a study and read the results of its runs."""
        first = study.runs()
        stage = second_stage(study, first, runs)
        names = {run.name for run in first}
        planned = first + [run for run in stage.runs if run.name not in names]
        finished, missing = {}, {}
        for run in planned:
            results = read_results(run.folder(runs))
            if results is None:
                missing[run.name] = why_unfinished(run.folder(runs))
            else:
                factors = {}
                for levels in run.factors.values():
                    factors |= levels
                finished[run.name] = Record(
                    run.name, run.folder(runs), factors, results["metrics"], results, run.config
                )
        selected = {name: study.levels(name) for name in study.selections}
        return cls(planned, finished, stage, selected, missing)

    def records(self, grid: str) -> list[Record]:
        """The finished runs of one grid, in the order of the YAML."""
        return [
            _as_level(replace(record, factors=run.factors[grid]), level)
            for run in self.planned
            if grid in run.factors and (record := self.finished.get(run.name))
            for level in run.calibrate.get(grid, [""])
        ]

    def levels(self, grid: str) -> dict[str, list[Any]]:
        """The levels of every factor of a grid in the order of the YAML, whether or not their runs
        are finished.
        """
        if grid in self.selected:
            return self.selected[grid]
        result: dict[str, dict[Any, None]] = {}
        for run in self.planned:
            for factor, level in run.factors.get(grid, {}).items():
                result.setdefault(factor, {})[level] = None
            for level in run.calibrate.get(grid, []):
                result.setdefault(CALIBRATE, {})[level] = None
        return {factor: list(levels) for factor, levels in result.items()}


def _as_level(record: Record, level: str) -> Record:
    """A run at a level of the factor `calibrate`, where its grid has that factor."""
    if not level:
        return record
    results = as_calibrated(record.results, level)
    factors = {**record.factors, CALIBRATE: level}
    return replace(record, factors=factors, metrics=results["metrics"], results=results)


def collect(study: Study, runs: Path, grid: str) -> list[Record]:
    """The finished runs of one grid."""
    return Collection.of(study, runs).records(grid)


def missing(study: Study, runs: Path) -> list[str]:
    """The names of runs that are not finished yet."""
    return list(Collection.of(study, runs).missing)
