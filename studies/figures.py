"""The figures of a report, drawn to be read at column width: labelled axes with units, colour-blind safe, nothing below 8 points."""

import io
import textwrap
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pyarrow.parquet as pq
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator
from torch import Tensor

from callbacks.uncertainty_figures import GREY, draw_entropy_curve, draw_reliability
from studies.captions import simulated_mark
from studies.collect import Record
from studies.measures import factor_name, measure
from studies.report_section import FigureSpec, Section
from studies.statistics import bootstrap_interval, summary
from studies.tables import units

# Okabe and Ito's palette; its yellow is left out, because it does not show on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS, STYLES = "osD^vPX", ("-", "--", ":", "-.")
TEXT = {"font.size": 9, "axes.labelsize": 9, "xtick.labelsize": 8, "ytick.labelsize": 8, "legend.fontsize": 8, "axes.titlesize": 9}
LOOK: Any = {**TEXT, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "report"}
WIDTH = 5.0  # inches


def draw_figure(spec: FigureSpec, records: list[Record], section: Section, paired: list[str]) -> tuple[Figure | None, str]:
    """A figure of the runs that it asks for, or none, with a note where something could not be drawn."""
    records = spec.select(records)
    if not records:
        return None, "Not drawn: none of its runs is finished."
    draw = {"points": _points, "lines": _lines, "curves": _curves}[spec.kind]
    with matplotlib.rc_context(LOOK):
        figure, note = draw(spec, records, section, paired)
        if figure:
            mark = simulated_mark(records)
            title = textwrap.fill(spec.title, int(12 * figure.get_figwidth()))
            figure.suptitle(title + (f"\n{mark}" if mark else ""), fontsize=10)
    return figure, note


def render(figure: Figure, kind: str) -> bytes:
    """The file's content; equal figures give equal files."""
    stream = io.BytesIO()
    with matplotlib.rc_context(LOOK):
        figure.savefig(stream, format=kind, dpi=200, metadata={"Date": None} if kind == "svg" else None)
    return stream.getvalue()


def _points(spec: FigureSpec, records: list[Record], section: Section, paired: list[str]) -> tuple[Figure | None, str]:
    """Every seed as a dot, row by row, and the mean with its interval just below."""
    values = {row: _finite(records, spec.metric, {spec.rows: row}, paired) for row in spec.levels[spec.rows]}
    if not any(len(v) for v in values.values()):
        return None, f"Not drawn: no finished run has {spec.metric}."
    figure = Figure(figsize=(WIDTH, 1.3 + 0.42 * len(values)), layout="constrained")
    axes = figure.add_subplot()
    for place, seeds in enumerate(values.values()):
        color = COLORS[place % len(COLORS)]
        axes.scatter(seeds, np.full(len(seeds), place - 0.14), s=14, color=color, alpha=0.55, linewidths=0)
        if len(seeds):
            low, high = bootstrap_interval(seeds) if len(seeds) > 1 else (seeds[0], seeds[0])
            axes.plot([low, high], [place + 0.16] * 2, color=color, linewidth=3.5, solid_capstyle="butt", alpha=0.6)
            axes.plot(summary(seeds).mean, place + 0.16, "|", color=color, markersize=11, markeredgewidth=2)
        axes.axhline(place + 0.5, color="#dddddd", linewidth=0.6, zorder=0)
    axes.set_yticks(range(len(values)), [section.label(row) for row in values])
    axes.set(ylim=(len(values) - 0.5, -0.5), xlabel=measure(spec.metric).axis)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    return figure, _note_missing([row for row, seeds in values.items() if not len(seeds)], section)


def _lines(spec: FigureSpec, records: list[Record], section: Section, paired: list[str]) -> tuple[Figure | None, str]:
    """The mean over seeds against a number, one line per level of another factor, with a band of one SD."""
    levels = sorted(spec.levels[spec.x])
    figure = Figure(figsize=(WIDTH, 3.1 + 0.09 * len(spec.levels[spec.lines])), layout="constrained")
    axes = figure.add_subplot()
    absent = []
    for place, line in enumerate(spec.levels[spec.lines]):
        found = {x: _finite(records, spec.metric, {spec.lines: line, spec.x: x}, paired) for x in levels}
        summaries = {x: summary(seeds) for x, seeds in found.items() if len(seeds)}
        if not summaries:
            absent.append(line)
            continue
        x, mean = np.array(list(summaries)), np.array([s.mean for s in summaries.values()])
        sd = np.nan_to_num([s.sd for s in summaries.values()])
        color, style = COLORS[place % len(COLORS)], _style(place)
        axes.plot(
            x, mean, style, color=color, marker=MARKERS[place % len(MARKERS)], markersize=4.5, linewidth=1.5, label=section.label(line)
        )
        axes.fill_between(x, mean - sd, mean + sd, color=color, alpha=0.15, linewidth=0)
    if len(absent) == len(spec.levels[spec.lines]):
        return None, f"Not drawn: no finished run has {spec.metric}."
    if levels[0] > 0 and levels[-1] / levels[0] >= 8:
        axes.set_xscale("log")
    if len(levels) <= 10:
        axes.set_xticks(levels, [f"{level:g}" for level in levels])
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlabel=factor_name(spec.x), ylabel=_wrapped(measure(spec.metric).axis))
    _legend_outside(axes)
    return figure, _note_missing(absent, section)


def _curves(spec: FigureSpec, records: list[Record], section: Section, paired: list[str]) -> tuple[Figure | None, str]:
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
        color = COLORS[place % len(COLORS)]
        draw_reliability(left, probs, target_probs, color, section.label(row))
        draw_entropy_curve(right, probs, target_probs, color, section.label(row))
        for axes in (left, right):
            axes.get_lines()[-1].set_linestyle(_style(place))
        drawn, used = drawn + 1, used + len(folders)
    if not drawn:
        return None, "Not drawn: none of its runs has a predictions.parquet, which cli.py predict writes."
    right.axline((0, 0), slope=1, color=GREY, linewidth=1, linestyle="--", zorder=0)
    right.set(xlabel="annotators' entropy (nats)", ylabel="model's mean entropy (nats)", xlim=(0, None), ylim=(0, None))
    for axes in (left, right):
        _legend_below(axes)
    some = f"Drawn from the {used} of {len(records)} runs that have a predictions.parquet." if used < len(records) else ""
    return figure, " ".join(filter(None, (some, _note_missing(absent, section))))


def pooled_predictions(folders: list[Path]) -> tuple[Tensor, Tensor]:
    """The model's and the annotators' distributions of the test items of several runs, one after the other."""
    tables = [pq.read_table(folder / "predictions.parquet", filters=[("split", "=", "test")]) for folder in folders]

    def stacked(prefix: str) -> Tensor:
        names = [name for name in tables[0].column_names if name.removeprefix(f"{prefix}_").isdigit()]
        return torch.from_numpy(np.concatenate([np.column_stack([table[name].to_numpy() for name in names]) for table in tables]))

    return stacked("model"), stacked("annotators")


def _finite(records: list[Record], metric: str, wanted: dict[str, Any], paired: list[str]) -> np.ndarray:
    chosen = [r for r in records if all(r.factors[factor] == level for factor, level in wanted.items())]
    values = np.array(list(units(chosen, metric, paired).values()), dtype=np.float64)
    return values[np.isfinite(values)]


def _style(place: int) -> str:
    """Solid until the colours are used up."""
    return STYLES[place // len(COLORS) % len(STYLES)]


def _wrapped(label: str) -> str:
    return label.replace(", ", ",\n") if len(label) > 36 else label


def _legend_outside(axes: Axes) -> None:
    axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", frameon=False, ncols=2)


def _legend_below(axes: Axes) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False)


def _note_missing(levels: list[Any], section: Section) -> str:
    return f"Nothing to draw yet for {', '.join(section.label(level) for level in levels)}." if levels else ""
