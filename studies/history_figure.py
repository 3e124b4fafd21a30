"""How training went, epoch by epoch: the mean over seeds of a column of `history.json`."""

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from callbacks.history import Epochs, read_history
from callbacks.training_dynamics import SCORE, STRATA, dynamics_summary
from studies.collect import Record
from studies.figure_style import line_style, panels, shared_legend, wrapped
from studies.measures import measure
from studies.report_section import FigureSpec, Section

Curve = tuple[np.ndarray, np.ndarray, np.ndarray]  # epochs, mean and SD over seeds
MARKS = {"best_epoch": "*", "epoch_within_5pct": "o"}


def draw_history(spec: FigureSpec, records: list[Record], section: Section) -> tuple[Figure | None, list[str]]:
    """One line per level with a band of one SD over seeds, and what is said about it. Epochs that a run did not reach are those of the others."""
    histories = {level: _histories(records, spec.lines, level) for level in spec.levels[spec.lines]}
    curves = {level: mean_by_epoch(epochs, spec.metric) for level, epochs in histories.items()}
    if not any(len(epoch) for epoch, _, _ in curves.values()):
        columns = dict.fromkeys(name for epochs in histories.values() for rows in epochs for row in rows for name in row if name != "epoch")
        has = f"; they have {', '.join(columns)}" if columns else ""
        return None, [f"Not drawn: no finished run's history.json has the column {spec.metric}{has}."]
    figure, (axes,) = panels(1, 3.1 + 0.09 * len(curves))
    marks = []
    for place, (level, (epoch, mean, sd)) in enumerate(curves.items()):
        if not len(epoch):
            continue
        style = {**line_style(place), "marker": ""}
        axes.plot(epoch, mean, **style, linewidth=1.5, label=section.label(level))
        axes.fill_between(epoch, mean - sd, mean + sd, color=style["color"], alpha=0.15, linewidth=0)
        if spec.metric == SCORE:
            marked = mean_marks(histories[level])
            for name, symbol in MARKS.items():
                height = float(np.interp(marked[name], epoch, mean))
                axes.plot(
                    marked[name], height, symbol, color=style["color"], markersize=11 if symbol == "*" else 6, markeredgecolor="white"
                )
            marks.append(f"{section.label(level)} {marked['best_epoch']:.1f} and {marked['epoch_within_5pct']:.1f}")
    axes.set(xlabel="epoch (the first is 0)", ylabel=wrapped(column_name(spec.metric)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if spec.metric.removeprefix("val/") in STRATA:
        axes.set_yscale("log")
    cut = first_epochs_cut(axes, curves)
    shared_legend(figure, axes)
    seeds = [len(epochs) for epochs in histories.values() if epochs]
    said = [
        f"Lines: mean over {min(seeds) if min(seeds) == max(seeds) else f'{min(seeds)} to {max(seeds)}'} seeds; bands: ± 1 SD over seeds."
    ]
    if len({len(rows) for epochs in histories.values() for rows in epochs}) > 1:
        said.append("Runs differ in length; an epoch's mean is over the runs that reached it.")
    if cut:
        said.append(f"The first epochs go beyond the axis, up to {cut:.3g}.")
    if marks:
        said.append(f"Stars and circles: mean epoch of the best soft NLL, and of the first within 5 % of it: {'; '.join(marks)}.")
    absent = [section.label(level) for level, (epoch, _, _) in curves.items() if not len(epoch)]
    return figure, said + ([f"Nothing to draw yet for {', '.join(absent)}."] if absent else [])


def first_epochs_cut(axes: Axes, curves: dict[Any, Curve]) -> float:
    """Let the axis end where the first tenth of epochs does, if these are so high that all others would look alike; returns how high they are, or 0."""
    tops = [(np.max(mean), np.max((mean + sd)[epoch >= 0.1 * epoch[-1]])) for epoch, mean, sd in curves.values() if len(epoch)]
    highest, later = (float(np.max(values)) for values in zip(*tops, strict=True))
    if later <= 0 or highest < 1.3 * later:
        return 0.0
    low, _ = axes.get_ylim()
    axes.set_ylim(low, later + 0.05 * (later - low))
    return highest


def mean_by_epoch(histories: list[Epochs], column: str) -> Curve:
    """The epochs in which some run has a finite value, and mean and SD over the runs that have one (an SD of 0 where it is one run).

    >>> [values.tolist() for values in mean_by_epoch([[{"epoch": 0, "lr": 1.0}, {"epoch": 1, "lr": 4.0}], [{"epoch": 0, "lr": 3.0}]], "lr")]
    [[0, 1], [2.0, 4.0], [1.4142135623730951, 0.0]]
    """
    found = [{int(row["epoch"]): row[column] for row in rows if math.isfinite(row.get(column, math.nan))} for rows in histories]
    epochs = np.array(sorted({epoch for run in found for epoch in run}), dtype=int)
    table = np.array([[run.get(int(epoch), math.nan) for epoch in epochs] for run in found]).reshape(len(found), len(epochs))
    number = np.isfinite(table).sum(0)
    mean = np.nansum(table, axis=0) / np.maximum(number, 1)
    squares = np.nansum(np.square(table - mean), axis=0)
    return epochs, mean, np.sqrt(squares / np.maximum(number - 1, 1))


def mean_marks(histories: list[Epochs]) -> dict[str, float]:
    """When soft NLL was best, and first within 5 % of it: the mean over the runs of each one's own epoch."""
    summaries = [summary for rows in histories if (summary := dynamics_summary(rows))]
    return {name: float(np.mean([summary[name] for summary in summaries])) for name in MARKS}


def column_name(column: str) -> str:
    """
    >>> column_name("val/soft_nll"), column_name("train/loss"), column_name("val/js_hlv")
    ('Validation soft NLL (nats)', 'Training loss', 'JS divergence from the epoch before, not unanimous (HLV) (nats)')
    """
    split, _, name = column.rpartition("/")
    if name in STRATA:
        return f"JS divergence from the epoch before, {STRATA[name][0]} (nats)"
    if column in (named := {"train/loss": "Training loss", "val/loss": "Validation loss (nats)", "lr": "Learning rate"}):
        return named[column]
    found = measure(name)
    title = found.name if found.name[1:2].isupper() else found.name[:1].lower() + found.name[1:]  # an abbreviation stays as it is
    splits = {"train": "Training items: ", "val": "Validation ", "test": "Test "}  # the first is no loss of training
    return f"{splits[split]}{title}{f' ({found.unit})' if found.unit else ''}" if split in splits else column


def _histories(records: list[Record], factor: str, level: Any) -> list[Epochs]:
    of_level = [read_history(record.folder) for record in records if record.factors[factor] == level]
    return [rows for rows in of_level if rows]
