"""The `report` section of a study's YAML, checked against the study and its runs before anything is
trained or drawn.
"""

from dataclasses import dataclass, field
from typing import Any

from studies.analysis.collect import Collection
from studies.plan.study import Run, Study
from studies.report.part import Part
from studies.report.planned_runs import PlannedRuns
from studies.report.section import Section
from studies.schema.checks import Checks
from studies.schema.grid_options import GridReading
from studies.schema.options import read_entry
from studies.tables.measures import MEASURES


@dataclass
class SectionReading(GridReading):
    """A report section beside the study's runs: those that are finished, or those that are yet to
    be trained.
    """

    runs: list[Run] = field(default_factory=list)
    metrics: set[str] = field(default_factory=set)
    ahead: PlannedRuns | None = None  # where nothing is trained yet

    def check_metric(self, metric: Any, key: str) -> None:
        """Refuse a metric that no run has, or that none will have."""
        if self.ahead is None:
            self.checks.one_of(metric, self.metrics, key, "a metric")
        else:
            self.ahead.check_metric(metric, self.metrics, self.values, key)

    def check_column(self, column: str, key: str) -> None:
        """Refuse a column that no run's history.json will have."""
        if self.ahead is not None:
            self.ahead.check_column(column, self.values, key)

    def check_runs(self, part: Part, key: str) -> None:
        """Refuse a part that will find nothing of what it is made of."""
        if self.ahead is not None:
            self.ahead.check_part(part, key)


def read_section(study: Study, collection: Collection, ahead: PlannedRuns | None = None) -> Section:
    """The section with its defaults filled in; a mistake raises an InputError that names the file
    and the key.

    Args:
        ahead: The runs that will be there, where the section is read before they are trained.
    """
    checks = Checks(study.path)
    levels = {grid: collection.levels(grid) for grid in study.grid_names}
    finished = (name for record in collection.finished.values() for name in record.metrics)
    reading = SectionReading(
        checks,
        grids=study.grid_names,
        levels_of=levels.__getitem__,
        paired=study.paired,
        runs=collection.planned,
        metrics={*MEASURES, *finished},
        ahead=ahead,
    )
    section = Section(**read_entry(Section, study.report or {}, "report", reading))
    _check_names(study, section, checks)
    return section


def _check_names(study: Study, section: Section, checks: Checks) -> None:
    """Every file has a name of its own."""
    for key in ("tables", "figures", "comparisons"):
        checks.unique([part.name for part in getattr(section, key)], f"report.{key}")
    parts = (
        *section.datasets,
        *section.tables,
        *section.changes,
        *section.mode_shifts,
        *section.comparisons,
    )
    files = [part.name for part in parts] + ["claims"] * bool(section.claims)
    files += [f"{spec.name}-{table}" for spec in section.figures for table in spec.tables]
    files += [f"{name}-options" for name in study.selections]
    files += ["ensembles"] * bool(section.tables)
    checks.unique(files, "report")
