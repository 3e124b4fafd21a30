"""How training went, epoch by epoch: the mean over seeds of a column of `history.json`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from callbacks.figures.figure_text import TITLE, as_typed
from callbacks.history import Epochs, read_history
from callbacks.training_dynamics import SCORE, STRATA, dynamics_summary
from studies.analysis.collect import Record
from studies.analysis.statistics import LARGEST
from studies.figures.figure_style import line_style, panels, shared_legend, wrapped
from studies.report.section import ABSENT, FigureSpec, Section
from studies.tables.captions import seeds_of
from studies.tables.measures import measure

# epochs, mean over seeds, and the band about it
Curve = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
MARKS = {"best_epoch": "*", "epoch_within_5pct": "o"}
BANDS = {
    False: "± 1 SD over seeds",
    True: "on logarithmic axes from the least seed to the greatest",
}


@dataclass(frozen=True)
class Panel:
    """One column of the histories at one level of the panels' factor."""

    metric: str
    level: Any  # of the panels' factor; ABSENT without one
    histories: dict[Any, list[Epochs]]  # by line

    @property
    def logarithmic(self) -> bool:
        return is_logarithmic(self.metric)

    @cached_property
    def curves(self) -> dict[Any, Curve]:
        result = {line: curve_of(epochs, self.metric) for line, epochs in self.histories.items()}
        return {line: curve for line, curve in result.items() if len(curve[0])}


def draw_history(
    spec: FigureSpec, records: list[Record], section: Section
) -> tuple[Figure | None, list[str]]:
    """One line per level with a band about it, and what is said about both.

    Epochs that a run did not reach are those of the others.

    Several columns are one row of panels each where there is a factor for the panels, and one panel
    each where there is none.
    """
    by_level = {level: _histories(spec, records, level) for level in spec.panel_levels}
    shown = [
        Panel(metric, level, by_level[level])
        for metric in spec.metrics
        for level in spec.panel_levels
    ]
    if not any(panel.curves for panel in shown):
        every = [
            rows
            for histories in by_level.values()
            for epochs in histories.values()
            for rows in epochs
        ]
        columns = dict.fromkeys(
            name for rows in every for row in rows for name in row if name != "epoch"
        )
        has = f"; they have {', '.join(columns)}" if columns else ""
        return None, [
            "Not drawn: no finished run's history.json has the column "
            f"{' or '.join(spec.metrics)}{has}."
        ]
    several = len(spec.metrics) > 1 and bool(spec.panels)
    height = 3.1 + 0.09 * len(spec.levels[spec.lines]) - 0.5 * (len(shown) > 1)
    figure, places = panels(len(shown), height, across=len(spec.panel_levels) if several else 3)
    messages = _about_lines(
        [epochs for histories in by_level.values() for epochs in histories.values() if epochs],
        spec.metrics,
    )
    marks = []
    for place, (axes, panel) in enumerate(zip(places, shown, strict=True)):
        drawn, marked = _draw_panel(axes, panel, spec, section)
        messages, marks = messages + drawn, marks + marked
        axes.set_xlabel("epoch (the first is 0)")
        if (
            not several or place % len(spec.panel_levels) == 0
        ):  # a row of panels is of one column of the histories
            axes.set_ylabel(
                wrapped(as_typed(column_name(panel.metric), TITLE), 36 if len(shown) == 1 else 22)
            )
    shared_legend(figure, max(places, key=lambda axes: len(axes.get_legend_handles_labels()[1])))
    if marks:
        messages.append(
            "Stars and circles: mean epoch of the best soft NLL, and of the first within 5 % of "
            f"it: {'; '.join(marks)}."
        )
    return figure, messages


def _draw_panel(
    axes: Axes, panel: Panel, spec: FigureSpec, section: Section
) -> tuple[list[str], list[str]]:
    """The lines and marks of one panel; what is to be said about this panel alone, and where the
    marks are.
    """
    at = "" if panel.level is ABSENT else section.label(panel.level)
    at += f"{', ' * bool(at)}{panel.metric}" if len(spec.metrics) > 1 else ""
    at += ": " if at else ""
    marks = []
    for place, line in enumerate(panel.histories):
        if line not in panel.curves:
            continue
        epoch, mean, low, high = panel.curves[line]
        style = {**line_style(place), "marker": ""}
        axes.plot(epoch, mean, **style, linewidth=1.5, label=as_typed(section.label(line)))
        axes.fill_between(epoch, low, high, color=style["color"], alpha=0.15, linewidth=0)
        if panel.metric == SCORE:
            marked = mean_marks(panel.histories[line])
            for name, symbol in MARKS.items():
                height = float(np.interp(marked[name], epoch, mean))
                axes.plot(
                    marked[name],
                    height,
                    symbol,
                    color=style["color"],
                    markersize=11 if symbol == "*" else 6,
                    markeredgecolor="white",
                )
            marks.append(
                f"{section.label(line)} {marked['best_epoch']:.1f} and "
                f"{marked['epoch_within_5pct']:.1f}"
            )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if panel.logarithmic:
        axes.set_yscale("log")
    if panel.level is not ABSENT:
        axes.set_title(as_typed(section.label(panel.level)))
    cut = 0.0 if panel.logarithmic else first_epochs_cut(axes, panel.curves)
    messages = [f"{at}The first epochs go beyond the axis, up to {cut:.3g}."] if cut else []
    absent = [section.label(line) for line in panel.histories if line not in panel.curves]
    return messages + ([f"{at}Nothing to draw yet for {', '.join(absent)}."] if absent else []), [
        at + ", ".join(marks)
    ] * bool(marks)


def _about_lines(histories: list[list[Epochs]], metrics: Sequence[str]) -> list[str]:
    """How many seeds lines are means of, what bands are, and whether runs were equally long."""
    seeds = seeds_of({len(epochs) for epochs in histories})
    bands = [
        name
        for logarithmic, name in BANDS.items()
        if any(is_logarithmic(metric) == logarithmic for metric in metrics)
    ]
    messages = [f"Lines: mean over {seeds}; bands: {'; '.join(bands)}."]
    if len({len(rows) for epochs in histories for rows in epochs}) > 1:
        messages.append("Runs differ in length; an epoch's mean is over the runs that reached it.")
    return messages


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


def _histories(spec: FigureSpec, records: list[Record], panel: Any) -> dict[Any, list[Epochs]]:
    result: dict[Any, list[Epochs]] = {line: [] for line in spec.levels[spec.lines]}
    for record in records:
        if panel is ABSENT or record.factors[spec.panels] == panel:
            rows = read_history(record.folder)
            if rows:
                result[record.factors[spec.lines]].append(rows)
    return result
