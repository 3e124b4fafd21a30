"""Columns of `history.json` over several seeds: their mean by epoch, and how they are called."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from callbacks.epochs.dynamics import STRATA, dynamics_summary
from callbacks.history import Epochs
from studies.analysis.statistics import LARGEST
from studies.tables.measures import measure

# epochs, mean over seeds, and the band about it
Curve = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
MARKS = {"best_epoch": "*", "epoch_within_5pct": "o"}


def first_epochs_cut(axes: Axes, curves: dict[Any, Curve]) -> float:
    """Let the axis end where the first tenth of epochs does, if these are so high that all others
    would look alike; returns how high they are, or 0.
    """
    if not curves:
        return 0.0
    tops = [
        (np.max(mean), np.max(high[epoch >= 0.1 * epoch[-1]]))
        for epoch, mean, _, high in curves.values()
    ]
    highest, later = (float(np.max(values)) for values in zip(*tops, strict=True))
    if later <= 0 or highest < 1.3 * later:
        return 0.0
    low, _ = axes.get_ylim()
    axes.set_ylim(low, later + 0.05 * (later - low))
    return highest


def is_logarithmic(column: str) -> bool:
    """Whether a column is drawn on a logarithmic axis, where a mean less one SD may have no
    place.
    """
    return column.removeprefix("val/") in STRATA


def curve_of(histories: list[Epochs], column: str) -> Curve:
    """The epochs in which some run has a finite value (and one that can be squared), the mean over
    the runs that have one, and a band: one SD to either side (0 where it is one run), or on a
    logarithmic axis from the least run to the greatest.

    >>> runs = [[{"epoch": 0, "lr": 1.0}, {"epoch": 1, "lr": 4.0}], [{"epoch": 0, "lr": 3.0}]]
    >>> [values.round(3).tolist() for values in curve_of(runs, "lr")]
    [[0, 1], [2.0, 4.0], [0.586, 4.0], [3.414, 4.0]]
    """
    result = [
        {int(row["epoch"]): row[column] for row in rows if abs(row.get(column, math.nan)) < LARGEST}
        for rows in histories
    ]
    epochs = np.array(sorted({epoch for run in result for epoch in run}), dtype=int)
    table = np.array(
        [[run.get(int(epoch), math.nan) for epoch in epochs] for run in result]
    ).reshape(len(result), len(epochs))
    number = np.isfinite(table).sum(0)
    mean = np.nansum(table, axis=0) / np.maximum(number, 1)
    if is_logarithmic(column) and len(epochs):
        return epochs, mean, np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    sd = np.sqrt(np.nansum(np.square(table - mean), axis=0) / np.maximum(number - 1, 1))
    return epochs, mean, mean - sd, mean + sd


def mean_marks(histories: list[Epochs]) -> dict[str, float]:
    """When soft NLL was best, and first within 5 % of it: the mean over the runs of each one's own
    epoch.
    """
    summaries = [summary for rows in histories if (summary := dynamics_summary(rows))]
    return {name: float(np.mean([summary[name] for summary in summaries])) for name in MARKS}


def column_name(column: str) -> str:
    """
    >>> column_name("val/soft_nll"), column_name("train/loss"), column_name("val/js_hlv")
    ('Validation soft NLL (nats)', 'Training loss', 'JS divergence from the epoch before, not
    unanimous (HLV) (nats)')
    """
    split, _, name = column.rpartition("/")
    if name in STRATA:
        return f"JS divergence from the epoch before, {STRATA[name][0]} (nats)"
    if column in (
        named := {
            "train/loss": "Training loss",
            "val/loss": "Validation loss (nats)",
            "lr": "Learning rate",
        }
    ):
        return named[column]
    result = measure(name)
    # an abbreviation stays as it is
    title = result.name if result.name[1:2].isupper() else result.name[:1].lower() + result.name[1:]
    # the first is no loss of training
    splits = {
        "train": "Training items: ",
        "val": "Validation ",
        "test": "Test ",
    }
    return (
        f"{splits[split]}{title}{f' ({result.unit})' if result.unit else ''}"
        if split in splits
        else column
    )
