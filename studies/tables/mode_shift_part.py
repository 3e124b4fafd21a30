"""The mode-shift control of a report: every gain in accuracy over a reference, split by whether the
labels' most probable class changed.
"""

from typing import Any

import numpy as np

from callbacks.prediction_table import class_probs, read_predictions
from core.errors import InputError
from experiment.build import training_labels
from studies.analysis.collect import Record
from studies.analysis.data_of_runs import DataOfRuns, check_of_data
from studies.analysis.mode_shift import ModeShift, mode_shift
from studies.report.section import ModeShiftSpec, Section
from studies.tables.captions import notices, seeds_of
from studies.tables.listing import Listing
from studies.tables.measures import factor_name
from studies.tables.table_formats import with_sd

PARTS = ("all", "changed", "kept")


def mode_shift_listing(
    spec: ModeShiftSpec,
    records: list[Record],
    section: Section,
    paired: list[str],
    data: DataOfRuns,
) -> Listing:
    """One row for each level (but the reference) of each group, over the seeds that both have
    predictions of.
    """
    records = spec.select(records)
    rows, absent = [], []
    for group in spec.levels[spec.groups]:
        for level in [level for level in spec.levels[spec.rows] if level != spec.reference]:
            try:
                shifts = shifts_by_seed(spec, records, paired, group, level, data)
                rows.append(
                    {
                        "group": section.label(group),
                        "level": section.label(level),
                        **_numbers(shifts),
                    }
                )
            except InputError as error:
                absent.append(f"Absent: {section.label(group)}, {section.label(level)}: {error}")
    reference = section.label(spec.reference)
    shown = {
        "group": factor_name(spec.groups),
        "level": factor_name(spec.rows),
        "items_changed": "test items of another class",
    }
    shown |= {
        "accuracy_reference_shown": f"accuracy with {reference}",
        "accuracy_shown": "accuracy",
    }
    shown |= {
        "all_shown": "gain",
        "changed_shown": "of it: another class (mode shift)",
        "kept_shown": "of it: same class (softness)",
    }
    hidden = tuple(name for name in shown if name.endswith("_shown"))
    messages = notices(records, section.scale)
    if rows:
        messages.append(
            f"Mean ± SD over {seeds_of({row['seeds'] for row in rows})}, in percentage points, "
            "against people's majority."
        )
    messages.append(
        f"Gain: in accuracy over training with {reference}, all test items counted. It is split "
        "exactly: items whose most probable class is another one in the "
        "labels trained on, and items where it is the same, so that the labels only became softer "
        "(or harder)."
    )
    return Listing(spec.name, spec.title, [*messages, *absent], shown, rows, hidden)


def shifts_by_seed(
    spec: ModeShiftSpec,
    records: list[Record],
    paired: list[str],
    group: Any,
    level: Any,
    data: DataOfRuns,
) -> list[ModeShift]:
    """Of each seed for which both the level and the reference have predictions."""
    result: dict[tuple, dict[Any, Record]] = {}
    for record in records:
        of_pair = record.factors[spec.groups] == group and record.factors[spec.rows] in (
            level,
            spec.reference,
        )
        if of_pair and (record.folder / "predictions.parquet").is_file():
            result.setdefault(tuple(record.factors.get(factor) for factor in paired), {})[
                record.factors[spec.rows]
            ] = record
    pairs = [(seed[spec.reference], seed[level]) for seed in result.values() if len(seed) == 2]
    if not pairs:
        raise InputError("no seed has a predictions.parquet, which cli.py predict writes, of both.")
    return [_shift(before, after, data) for before, after in pairs]


def _shift(before: Record, after: Record, data: DataOfRuns) -> ModeShift:
    (index, predicted_before), (other, predicted_after) = (
        _test_predictions(record) for record in (before, after)
    )
    if not np.array_equal(index, other):
        raise InputError(
            f"{before.run} and {after.run} have predictions of different test items; both must be "
            "of one split."
        )
    source = data.of(before.config)
    assert source.corpus is not None
    check_of_data(index, None, source, before.folder)
    old, new = (
        training_labels(record.config, source).majority[index] for record in (before, after)
    )
    return mode_shift(
        predicted_before, predicted_after, old, new, source.annotator_votes.majority[index]
    )


def _test_predictions(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """Item numbers in order, and the class that is predicted for each."""
    table = read_predictions(record.folder, "test").sort_by("index")
    return table["index"].to_numpy(), class_probs(table, "model").argmax(1)


def _numbers(shifts: list[ModeShift]) -> dict[str, Any]:
    """In percentage points; means and SDs over seeds."""
    values = {
        "accuracy_reference": [shift.all.right_before / shift.all.items for shift in shifts],
        "accuracy": [shift.all.right_after / shift.all.items for shift in shifts],
        **{part: [shift.gain(getattr(shift, part)) for shift in shifts] for part in PARTS},
    }
    row: dict[str, Any] = {
        "items": shifts[0].all.items,
        "items_changed": shifts[0].changed.items,
        "seeds": len(shifts),
    }
    for name, column in values.items():
        points = 100 * np.array(column)
        mean, sd = (
            float(points.mean()),
            float(points.std(ddof=1)) if len(points) > 1 else float("nan"),
        )
        shown = with_sd(mean, sd, 2)
        row |= {
            f"{name}_mean": mean,
            f"{name}_sd": sd,
            f"{name}_shown": f"+{shown}" if name in PARTS and mean > 0 else shown,
        }
    return row
