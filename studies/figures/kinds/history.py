"""How training went, epoch by epoch: the mean over seeds of a column of `history.json`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from callbacks.epochs.dynamics import SCORE
from callbacks.figures.figure_text import TITLE, as_typed
from callbacks.history import Epochs, read_history
from studies.analysis.collect import Record
from studies.figures.bound_lines import draw_bounds
from studies.figures.figure_spec import Around, DrawnFigure, FigureSpec
from studies.figures.figure_style import line_style, panels, shared_legend, wrapped
from studies.figures.history_curves import (
    MARKS,
    Curve,
    column_name,
    curve_of,
    first_epochs_cut,
    is_logarithmic,
    mean_marks,
)
from studies.report.section import Section
from studies.schema.grid_options import Factor
from studies.schema.options import ABSENT, Kind, option
from studies.tables.captions import seeds_of

BANDS = {
    False: "± 1 SD over seeds",
    True: "on logarithmic axes from the least seed to the greatest",
}


class HistoryColumns(Kind):
    """Columns of history.json."""

    words = "a column of history.json, such as `val/soft_nll`, or a list of columns"

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """As it is."""
        columns = value if isinstance(value, list) else [value]
        if not value or not all(isinstance(column, str) for column in columns):
            reading.checks.wrong(key, f"is {value}; it must be {self.words.replace('`', '')}")
        for column in columns:
            reading.check_column(column, key)
        return value


@dataclass(frozen=True, kw_only=True)
class HistoryFigure(FigureSpec):
    """Columns of history.json by epoch: the mean over seeds. Several columns are one row of panels
    each where there is a factor for the panels, and one panel each where there is none.
    """

    example: ClassVar[str] = """\
name: training
kind: history
metric: [val/soft_nll, val/loss]
lines: data.delivery
panels: data.votes_per_item
"""
    of_model: ClassVar[bool] = True

    metric: Any = option(HistoryColumns(), "what is drawn")
    lines: str = option(Factor(), "one line for each of its levels")
    panels: str = option(Factor(), "one panel for each of its levels", default="")

    def draw(self, found: list[Record], around: Around) -> DrawnFigure:
        """One line per level."""
        return draw_history(self, found, around.section)


@dataclass(frozen=True)
class Panel:
    """One column of the histories at one level of the panels' factor."""

    metric: str
    level: Any  # of the panels' factor; ABSENT without one
    histories: dict[Any, list[Epochs]]  # by line

    @property
    def logarithmic(self) -> bool:
        """Whether its axis is."""
        return is_logarithmic(self.metric)

    @cached_property
    def curves(self) -> dict[Any, Curve]:
        """By line; those without an epoch are absent."""
        result = {line: curve_of(epochs, self.metric) for line, epochs in self.histories.items()}
        return {line: curve for line, curve in result.items() if len(curve[0])}


def draw_history(
    spec: HistoryFigure, records: list[Record], section: Section
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
        messages += _draw_bounds(axes, panel, spec, records, section)
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
    axes: Axes, panel: Panel, spec: HistoryFigure, section: Section
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


def _draw_bounds(
    axes: Axes, panel: Panel, spec: HistoryFigure, records: list[Record], section: Section
) -> list[str]:
    """Floor and ceiling of a score; those of validation items are not known, but for the test items
    they are.
    """
    split, _, score = panel.metric.rpartition("/")
    if split not in ("val", "test"):
        return []
    groups = [
        [
            record
            for record in records
            if record.factors[spec.lines] == line
            and (panel.level is ABSENT or record.factors[spec.panels] == panel.level)
        ]
        for line in panel.curves
    ]
    at = "" if panel.level is ABSENT else f", {section.label(panel.level)}"
    return draw_bounds(axes, groups, score, note=f"{at}, test items")


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


def _histories(spec: HistoryFigure, records: list[Record], panel: Any) -> dict[Any, list[Epochs]]:
    result: dict[Any, list[Epochs]] = {line: [] for line in spec.levels[spec.lines]}
    for record in records:
        if panel is ABSENT or record.factors[spec.panels] == panel:
            rows = read_history(record.folder)
            if rows:
                result[record.factors[spec.lines]].append(rows)
    return result
