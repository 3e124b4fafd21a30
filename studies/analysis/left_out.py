"""What a report leaves out, in a few lines: runs that are not finished, each with the cause, and
runs without a number that is shown.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from callbacks.records.results_kinds import are_results
from callbacks.results import read_failure, read_training
from core.errors import name_some
from core.read_json import read_json
from studies.analysis.statistics import LARGEST
from studies.schema.calibrate_factor import CALIBRATE

if TYPE_CHECKING:
    from studies.analysis.collect import Collection, Record
    from studies.report.part import Part
    from studies.report.report import Report

SHOWN = 3  # metrics that have a line of their own


def why_unfinished(folder: Path) -> str:
    """The cause, in a few words, why a run has no results that can be read."""
    if read_failure(folder):
        return "diverged"
    path = folder / "results.json"
    if os.path.lexists(path):
        content = read_json(path)
        whole = isinstance(content, dict) and are_results(content)
        return "results.json is not of a finished run" if whole else "damaged results.json"
    return "no results" if read_training(folder) or not folder.exists() else "training not ended"


def finished_line(collection: "Collection") -> str:
    """How many runs are finished, and the first few that are not."""
    missing = [f"{name} ({cause})" for name, cause in collection.missing.items()]
    message = f"{len(collection.finished)} of {len(collection.planned)} runs are finished"
    return f"{message}; missing: {name_some(missing)}" if missing else message


def undefined_lines(report: "Report") -> list[str]:
    """Of each metric that the report shows, the finished runs that are left out where it is shown,
    because they have no finite value of it.
    """
    shown = _shown(report)
    result = {
        metric: [r.run for r in runs if not abs(r.metrics.get(metric, float("nan"))) <= LARGEST]
        for metric, runs in shown.items()
    }
    lines = [
        f"{metric} is absent or not finite in {len(names)} of {len(shown[metric])} runs, which "
        f"are left out where it is shown: {name_some(names)}"
        for metric, names in result.items()
        if names
    ]
    more = [f"the same holds for {len(lines) - SHOWN} more metrics"] if len(lines) > SHOWN else []
    return lines[:SHOWN] + more


def _shown(report: "Report") -> dict[str, list["Record"]]:
    """The finished runs that each metric is shown of, in tables, changes and figures."""
    parts: list[tuple[Part, list[str]]] = [
        (table.spec, [table.spec.metric] if table.spec.pivot else table.spec.columns)
        for table in report.tables
    ]
    parts += [
        (replace(spec, where={**spec.where, spec.rows: [spec.level, spec.reference]}), spec.columns)
        for spec in report.section.changes
    ]
    parts += [(spec, spec.run_metrics) for spec in report.section.figures]
    shown: dict[str, dict[tuple[str, str], Record]] = {}
    for part, metrics in parts:
        records = {
            (record.run, record.factors.get(CALIBRATE, "")): record
            for record in part.select(report.collection.records(part.grid))
        }
        for metric in metrics:
            shown.setdefault(metric, {}).update(records)
    return {metric: list(records.values()) for metric, records in shown.items()}
