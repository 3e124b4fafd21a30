"""What the runs of a study will hold, known from their options before anything trains, so that a
report that nobody can make is refused then.

Only what certainly cannot be there is refused: somebody's own callback may log anything, and what
is there already counts.
"""

from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from callbacks.results import read_results
from metrics.calibrators import FORMS
from studies.analysis.collect import Collection
from studies.plan.study import Run, Study
from studies.report.part import Part
from studies.schema.checks import Checks

# who measures what, of metrics that not every test has
MEASURED_BY = {
    "hessian_*": "HessianSpectrum",
    "gradient_variance*": "GradientVariance",
    "cartography_*": "DataCartography",
    "*_auroc_*": "OODScores",
    "*_aupr_*": "OODScores",
    "*_fpr95_*": "OODScores",
    "set_coverage*": "PredictionSets",
    "set_size*": "PredictionSets",
    **{pattern: "Calibrators" for form in FORMS for pattern in (form, f"*_{form}")},
    "late_js*": "TrainingDynamics",
    "best_epoch": "TrainingDynamics",
    "best_loss_epoch": "TrainingDynamics",
    "epoch_within_5pct": "TrainingDynamics",
    "*_val_soft_nll": "TrainingDynamics",
    "items_*hlv": "StratumScores",
    "*_nohlv": "StratumScores",
    "*_hlv": "StratumScores",
    "*_original": "StratumScores",
}
LOGGED_BY = {  # the same of columns of history.json
    "val/js*": "TrainingDynamics",
    "train/loss": "",
    "train/*": "EpochScores",
    "test/*": "EpochScores",
}
# callbacks that measure nothing else
KNOWN = {*MEASURED_BY.values(), "EpochScores", "GradCAM"}
ANYTHING = "*"  # among callbacks: one of which nobody knows what it logs


def check_planned_report(study: Study, cells: list[Run], runs: Path) -> None:
    """Refuse a report section that the study's runs cannot fill, finished or yet to be trained."""
    from studies.report.section_reader import read_section

    selected = {name: study.levels(name) for name in study.selections}
    read_section(study, Collection(cells, {}, selected=selected), PlannedRuns(study, cells, runs))


class PlannedRuns:
    """The runs of a study by what they will hold."""

    def __init__(self, study: Study, cells: list[Run], runs: Path):
        self.study, self.checks, self.folder = study, Checks(study.path), runs
        self.cells: dict[str, list[Run]] = {grid: [] for grid in study.grids}
        for run in cells:
            for grid in run.factors:
                self.cells[grid].append(run)
        self._callbacks: dict[str, dict[str, set[str]]] = {}
        self._found: set[str] | None = None

    def check_metric(self, metric: Any, known: set[str], values: dict[str, Any], key: str) -> None:
        """Refuse a metric that none of the runs in question will have."""
        callbacks = self.callbacks(values["grid"], values["where"])
        if not isinstance(metric, str) or ANYTHING in callbacks:
            if not isinstance(metric, str):
                self.checks.one_of(metric, known, key, "a metric")
            return
        by = measured_by(metric, MEASURED_BY)
        if by in callbacks or (metric in known and not by) or metric in self.found():
            return
        if metric in known:
            self._refuse(metric, by, values["grid"], key)
        self.checks.one_of(metric, known, key, "a metric")

    def check_column(self, column: str, values: dict[str, Any], key: str) -> None:
        """Refuse a column of history.json that none of the runs in question will have."""
        callbacks = self.callbacks(values["grid"], values["where"])
        by = measured_by(column, LOGGED_BY)
        if by and by not in callbacks and ANYTHING not in callbacks:
            self._refuse(column, by, values["grid"], key)

    def check_part(self, part: Part, key: str) -> None:
        """Refuse a part whose runs will not write what it is made of."""
        if part.needs_predictions and not self.study.predict:
            if any(self._has(run, "predictions.parquet") for run in self._cells(part.grid)):
                return
            self.checks.wrong(
                key,
                "is made of predictions.parquet, which runs of this study would not write; say "
                "predict: true",
            )
        callbacks = self.callbacks(part.grid, part.where)
        if part.needs_callback and not {part.needs_callback, ANYTHING} & callbacks:
            self.checks.wrong(
                key,
                f"is made of what the callback {part.needs_callback} writes, and no run of the "
                f"grid {part.grid} that it shows has that callback",
            )

    def callbacks(self, grid: str, where: dict[str, list]) -> set[str]:
        """The names of all callbacks of the runs that `where` leaves of a grid, together."""
        if grid in self.study.selections:  # its runs are those of another grid, with more options
            selection = self.study.selections[grid]
            if "callbacks" in repr(selection.then):
                return {ANYTHING}
            return self.callbacks(selection.grid, selection.where)
        every = self._callbacks.setdefault(grid, {})
        if not every:
            for run in self.cells[grid]:
                listed = run.config["trainer"].get("callbacks") or []
                every[run.name] = {_name(callback["class_path"]) for callback in listed}
        first = next(iter(every.values()))
        if all(names == first for names in every.values()):
            return first
        return {
            name for run in self.cells[grid] if run.is_in(grid, where) for name in every[run.name]
        }

    def found(self) -> set[str]:
        """The metrics of runs that are finished already; they are read when one is in doubt."""
        if self._found is None:
            results = (
                read_results(run.folder(self.folder)) for run in self._cells(*self.study.grids)
            )
            self._found = {name for result in results if result for name in result["metrics"]}
        return self._found

    def _cells(self, *grids: str) -> list[Run]:
        return [run for grid in grids for run in self.cells.get(grid, [])]

    def _has(self, run: Run, file: str) -> bool:
        return (run.folder(self.folder) / file).is_file()

    def _refuse(self, metric: str, by: str, grid: str, key: str) -> None:
        self.checks.wrong(
            key,
            f"is {metric}, which the callback {by} measures, and no run of the grid {grid} that "
            "is shown has that callback",
        )


def measured_by(name: str, table: dict[str, str]) -> str:
    """The callback that a metric is measured by; none where every test has it.

    >>> measured_by("kl_hlv", MEASURED_BY), measured_by("kl", MEASURED_BY)
    ('StratumScores', '')
    """
    return next((by for pattern, by in table.items() if fnmatch(name, pattern)), "")


def _name(class_path: str) -> str:
    """
    >>> _name("callbacks.HessianSpectrum"), _name("mine.Score")
    ('HessianSpectrum', '*')
    """
    module, _, name = class_path.rpartition(".")
    if module.startswith("lightning."):
        return name
    return name if module == "callbacks" and name in KNOWN else ANYTHING
