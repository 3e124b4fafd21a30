"""The figures of a report, drawn to be read at column width: labelled axes with units, colour-blind
safe, nothing below 8 points.
"""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator
from torch import Tensor

from callbacks.figures.figure_text import TITLE, as_typed
from callbacks.prediction_table import class_probs, number_of_classes, read_predictions
from callbacks.uncertainty_figures import GREY, draw_entropy_curve, draw_reliability
from core.errors import InputError
from studies.analysis.collect import Record
from studies.analysis.data_of_runs import DataOfRuns
from studies.analysis.statistics import bootstrap_interval, summary
from studies.figures.entropy_histogram import draw_entropy_histogram
from studies.figures.examples import find_examples
from studies.figures.examples_figure import draw_examples
from studies.figures.figure_style import COLORS, LOOK, line_style, panels, shared_legend, wrapped
from studies.figures.history_figure import draw_history
from studies.report.section import FigureSpec, Section
from studies.tables.captions import simulated_mark
from studies.tables.measures import factor_name, measure
from studies.tables.tables import units


def draw_figure(
    spec: FigureSpec, records: list[Record], section: Section, paired: list[str], data: DataOfRuns
) -> tuple[Figure | None, list[str]]:
    """A figure of the runs that it asks for, or none, with what is to be said about it."""
    records = spec.select(records)
    if not records:
        return None, ["Not drawn: none of its runs is finished."]
    with matplotlib.rc_context(LOOK):
        if spec.kind == "history":
            figure, messages = draw_history(spec, records, section)
        elif spec.kind == "entropy_histogram":
            figure, messages = draw_entropy_histogram(spec, records, section, data)
        elif spec.kind == "examples":
            examples, absent = find_examples(spec, records, paired, data)
            figure, messages = draw_examples(spec, examples, section) if examples else (None, [])
            messages += absent
        else:
            figure, note = {"points": _points, "lines": _lines, "curves": _curves}[spec.kind](
                spec, records, section, paired
            )
            messages = [note] if note else []
        if figure:
            add_title(figure, spec, records)
    return figure, messages


def add_title(figure: Figure, spec: FigureSpec, records: list[Record]) -> None:
    mark = simulated_mark(records)
    title = as_typed(spec.title, TITLE, width=int(12 * figure.get_figwidth()))
    figure.suptitle(title + (f"\n{mark}" if mark else ""), fontsize=10)


def _points(
    spec: FigureSpec, records: list[Record], section: Section, paired: list[str]
) -> tuple[Figure | None, str]:
    """Every seed as a dot, row by row, and the mean with its interval just below; one panel per
    metric.
    """
    rows = spec.levels[spec.rows]
    values = {
        (metric, row): _finite(records, metric, {spec.rows: row}, paired)
        for metric in spec.metrics
        for row in rows
    }
    if not any(len(v) for v in values.values()):
        return None, f"Not drawn: no finished run has {', '.join(spec.metrics)}."
    figure, places = panels(len(spec.metrics), 1.3 + 0.42 * len(rows))
    for axes, metric in zip(places, spec.metrics, strict=True):
        for place, row in enumerate(rows):
            _draw_seeds(axes, values[metric, row], place)
        axes.set_yticks(
            range(len(rows)),
            [as_typed(section.label(row)) for row in rows]
            if axes is places[0]
            else [""] * len(rows),
        )
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel=_axis(metric, spec))
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(MaxNLocator(6 if len(places) == 1 else 4))
    if all(isinstance(row, int | float) for row in rows):  # numbers do not say what they are
        places[0].set_ylabel(as_typed(factor_name(spec.rows)))
    return figure, _note_missing(
        [row for row in rows if not any(len(values[metric, row]) for metric in spec.metrics)],
        section,
    )


def _draw_seeds(axes: Axes, seeds: np.ndarray, place: int) -> None:
    color = COLORS[place % len(COLORS)]
    axes.scatter(
        seeds, np.full(len(seeds), place - 0.14), s=14, color=color, alpha=0.55, linewidths=0
    )
    if len(seeds):
        low, high = bootstrap_interval(seeds) if len(seeds) > 1 else (seeds[0], seeds[0])
        axes.plot(
            [low, high],
            [place + 0.16] * 2,
            color=color,
            linewidth=3.5,
            solid_capstyle="butt",
            alpha=0.6,
        )
        axes.plot(
            summary(seeds).mean, place + 0.16, "|", color=color, markersize=11, markeredgewidth=2
        )
    axes.axhline(place + 0.5, color="#dddddd", linewidth=0.6, zorder=0)


def _lines(
    spec: FigureSpec, records: list[Record], section: Section, paired: list[str]
) -> tuple[Figure | None, str]:
    """The mean over seeds against a number, one line per level of another factor, with a band of
    one SD; one panel per metric.
    """
    levels, lines = sorted(spec.levels[spec.x]), spec.levels[spec.lines]
    result = {
        (metric, line): {
            x: summary(v)
            for x in levels
            if len(v := _finite(records, metric, {spec.lines: line, spec.x: x}, paired))
        }
        for metric in spec.metrics
        for line in lines
    }
    if not any(result.values()):
        return None, f"Not drawn: no finished run has {', '.join(spec.metrics)}."
    figure, places = panels(len(spec.metrics), 3.1 + 0.09 * len(lines))
    for axes, metric in zip(places, spec.metrics, strict=True):
        for place, line in enumerate(lines):
            summaries = result[metric, line]
            x, mean = np.array(list(summaries)), np.array([s.mean for s in summaries.values()])
            sd = np.nan_to_num([s.sd for s in summaries.values()])
            style = line_style(place)
            if summaries:
                axes.plot(
                    x,
                    mean,
                    **style,
                    markersize=4.5,
                    linewidth=1.5,
                    label=as_typed(section.label(line)),
                )
                axes.fill_between(
                    x, mean - sd, mean + sd, color=style["color"], alpha=0.15, linewidth=0
                )
        if levels[0] > 0 and levels[-1] / levels[0] >= 8:
            axes.set_xscale("log")
        if len(levels) <= 10:
            axes.set_xticks(levels, [f"{level:g}" for level in levels])
            axes.xaxis.set_minor_locator(NullLocator())
        axes.set(xlabel=as_typed(factor_name(spec.x)), ylabel=_axis(metric, spec))
    shared_legend(figure, max(places, key=lambda axes: len(axes.get_lines())))
    return figure, _note_missing(
        [line for line in lines if not any(result[metric, line] for metric in spec.metrics)],
        section,
    )


def _curves(
    spec: FigureSpec, records: list[Record], section: Section, paired: list[str]
) -> tuple[Figure | None, str]:
    """Reliability and entropy of the test items of all seeds, where predictions were written."""
    figure = Figure(figsize=(7.0, 3.5 + 0.18 * len(spec.levels[spec.rows])), layout="constrained")
    left, right = figure.subplots(1, 2)
    absent, drawn, used = [], 0, 0
    for place, row in enumerate(spec.levels[spec.rows]):
        of_row = [r for r in records if r.factors[spec.rows] == row]
        folders = [r.folder for r in of_row if (r.folder / "predictions.parquet").is_file()]
        if not folders:
            absent.append(row)
            continue
        probs, target_probs = pooled_predictions(folders)
        style = line_style(place)
        draw_reliability(left, probs, target_probs, style["color"], section.label(row))
        draw_entropy_curve(right, probs, target_probs, style["color"], section.label(row))
        for axes in (left, right):
            axes.get_lines()[-1].set_linestyle(style["linestyle"])
        drawn, used = drawn + 1, used + len(folders)
    if not drawn:
        return (
            None,
            "Not drawn: none of its runs has a predictions.parquet, which cli.py predict writes.",
        )
    right.axline((0, 0), slope=1, color=GREY, linewidth=1, linestyle="--", zorder=0)
    right.set(
        xlabel="annotators' entropy (nats)",
        ylabel="model's mean entropy (nats)",
        xlim=(0, None),
        ylim=(0, None),
    )
    for axes in (left, right):
        _legend_below(axes)
    some = (
        f"Drawn from the {used} of {len(records)} runs that have a predictions.parquet."
        if used < len(records)
        else ""
    )
    return figure, " ".join(filter(None, (some, _note_missing(absent, section))))


def pooled_predictions(folders: list[Path]) -> tuple[Tensor, Tensor]:
    """The model's and the annotators' distributions of the test items of several runs, one after
    the other.
    """
    tables = [read_predictions(folder, "test") for folder in folders]
    other = [
        folder
        for folder, table in zip(folders, tables, strict=True)
        if number_of_classes(table) != number_of_classes(tables[0])
    ]
    if other:
        raise InputError(
            f"{other[0] / 'predictions.parquet'} has other classes than those of {folders[0]}; "
            "run predict again."
        )
    model, annotators = (
        np.concatenate([class_probs(table, who) for table in tables])
        for who in ("model", "annotators")
    )
    return torch.from_numpy(model), torch.from_numpy(annotators)


def _finite(
    records: list[Record], metric: str, wanted: dict[str, Any], paired: list[str]
) -> np.ndarray:
    chosen = [
        r for r in records if all(r.factors[factor] == level for factor, level in wanted.items())
    ]
    values = np.array(list(units(chosen, metric, paired).values()), dtype=np.float64)
    return values[np.isfinite(values)]


def _axis(metric: str, spec: FigureSpec) -> str:
    """Narrower panels need more lines."""
    return wrapped(as_typed(measure(metric).axis, TITLE), 36 if len(spec.metrics) == 1 else 22)


def _legend_below(axes: Axes) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False)


def _note_missing(levels: list[Any], section: Section) -> str:
    return (
        f"Nothing to draw yet for {', '.join(section.label(level) for level in levels)}."
        if levels
        else ""
    )
