"""Comparisons between networks are computed once: what they came to is kept beside the report until
a checkpoint or an option changes.

Comparing the checkpoints of a study can take hours, and a report is written many times.
"""

import json
import math
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.atomic_io import write_atomically
from core.errors import InputError
from core.folder_lock import folder_lock
from core.read_json import read_json, without_nan
from datamodules.io.files import sha256
from experiment.run_checkpoints import best_checkpoint
from studies.analysis.collect import Record
from studies.analysis.comparison.comparison import Comparison, PairLine, PairValue
from studies.analysis.comparison.comparison_checks import is_comparison
from studies.analysis.comparison.loss_barrier import LossLine
from studies.analysis.comparison.representations import compare_runs
from studies.plan.study import Run
from studies.report.section import ComparisonSpec

FILE = "representations.json"


def compared(
    spec: ComparisonSpec, records: list[Record], runs: Path, out: Path | None
) -> tuple[Comparison | str, list[str]]:
    """The comparison of the finished runs that an entry names, or why there is none, and what was
    left out.

    `out` is the report's folder; without one nothing is kept.
    """
    chosen = [record for record in spec.select(records) if best_checkpoint(record.folder).is_file()]
    absent = len(spec.select(records)) - len(chosen)
    levels = [record.factors[spec.rows] for record in chosen]
    single = sorted({str(level) for level in levels if levels.count(level) == 1})
    chosen = [record for record in chosen if levels.count(record.factors[spec.rows]) > 1]
    notes, number = [], f"{absent} finished run{'s' * (absent > 1)}"
    if absent:
        notes.append(f"Left out, because they have no checkpoint: {number}.")
    if single:
        notes.append(f"Left out, because only one seed of them is there: {', '.join(single)}.")
    if not chosen:
        return "no method has two finished runs with a checkpoint", notes
    key = {
        "runs": {record.run: sha256(best_checkpoint(record.folder)) for record in chosen},
        "options": {"factor": spec.rows, "points": spec.points, "quantile": spec.quantile},
    }
    # for hours, of which another report may make use
    with folder_lock(out, "compares networks") if out else nullcontext():
        kept = read_kept(out / FILE) if out else {}
        entry = kept.get(spec.name)
        if entry and all(entry.get(name) == value for name, value in key.items()):
            return entry["comparison"], notes
        try:
            study_runs = [
                Run(record.run, record.config, {spec.grid: record.factors}) for record in chosen
            ]
            result = compare_runs(study_runs, runs, **key["options"])
        except InputError as error:  # the report says so in the figures' place
            return str(error).rstrip("."), notes
        if out:
            content = {**kept, spec.name: {**key, "comparison": result}}
            content = {
                name: {**entry, "comparison": without_nan(asdict(entry["comparison"]))}
                for name, entry in content.items()
            }
            write_atomically(out / FILE, json.dumps(content, indent=1) + "\n")
        return result, notes


def comparison_of(content: dict[str, Any]) -> Comparison:
    """A comparison from its JSON."""
    values = [
        PairValue(
            **value
            | {"methods": tuple(value["methods"]), "seeds": tuple(value["seeds"])}
            | {"value": _number(value["value"])}
        )
        for value in content["values"]
    ]
    lines = [
        PairLine(**{**line, "methods": tuple(line["methods"]), "line": _line(line["line"])})
        for line in content["lines"]
    ]
    result = Comparison(**{**content, "values": values, "lines": lines})
    if not is_comparison(result):
        raise ValueError("what is no comparison of runs")
    return result


def _line(content: dict[str, Any]) -> LossLine:
    alphas, plain = ([_number(v) for v in content[name]] for name in ("alphas", "plain"))
    reestimated = [_number(v) for v in content["reestimated"]] if content["reestimated"] else None
    if not len(alphas) == len(plain) == len(reestimated or plain):
        raise ValueError("a line has another number of losses than of points")
    return LossLine(alphas, plain, reestimated)


def _number(value: float | None) -> float:
    """A finite number, or NaN for null."""
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value)
    ):
        raise ValueError(f"{value} is no finite number")
    return math.nan if value is None else value


def read_kept(path: Path) -> dict[str, Any]:
    """What is kept; nothing where there is no file.

    One that cannot be read was not written by a report.
    """
    if not path.is_file():
        return {}
    kept = read_json(path)
    try:
        return {
            name: {**entry, "comparison": comparison_of(entry["comparison"])}
            for name, entry in kept.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{path} cannot be read; delete it to have networks compared again."
        ) from error
