"""Means over seeds against a number."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.ticker import NullLocator

from callbacks.figures.figure_text import as_typed
from studies.analysis.collect import Record
from studies.analysis.statistics import summary
from studies.figures.bound_lines import draw_bounds
from studies.figures.figure_spec import Around, DrawnFigure, FigureSpec
from studies.figures.figure_style import (
    line_style,
    metric_axis,
    nothing_yet,
    panels,
    shared_legend,
)
from studies.schema.grid_options import Factor, Metrics, NumericFactor
from studies.schema.options import option
from studies.tables.measures import factor_name
from studies.tables.tables import finite_units


@dataclass(frozen=True, kw_only=True)
class Lines(FigureSpec):
    """The mean over seeds against a number, one line per level of another factor, with a band of
    one SD; one panel per metric.
    """

    example: ClassVar[str] = """\
name: by_votes
kind: lines
metric: soft_nll
x: data.votes_per_item
lines: data.delivery
"""

    metric: Any = option(Metrics(), "what is drawn")
    x: str = option(NumericFactor(), "the axis")
    lines: str = option(Factor(), "one line for each of its levels")

    def caption(self, records: list[Record], seeds: int) -> list[str]:
        """What lines and bands are."""
        return [f"Lines: mean over {seeds} seeds; bands: ± 1 SD over seeds."]

    def draw(self, found: list[Record], around: Around) -> DrawnFigure:
        """One panel per metric."""
        levels, lines = sorted(self.levels[self.x]), self.levels[self.lines]
        result = {
            (metric, line): {
                x: summary(v)
                for x in levels
                if len(
                    v := finite_units(found, metric, {self.lines: line, self.x: x}, around.paired)
                )
            }
            for metric in self.metrics
            for line in lines
        }
        if not any(result.values()):
            return None, [f"Not drawn: no finished run has {', '.join(self.metrics)}."]
        by_cell: dict[tuple, list[Record]] = {}
        for record in found:
            place = record.factors[self.lines], record.factors[self.x]
            by_cell.setdefault(place, []).append(record)
        bounds = []
        figure, places = panels(len(self.metrics), 3.1 + 0.09 * len(lines))
        for axes, metric in zip(places, self.metrics, strict=True):
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
                        label=as_typed(around.section.label(line)),
                    )
                    axes.fill_between(
                        x, mean - sd, mean + sd, color=style["color"], alpha=0.15, linewidth=0
                    )
            if levels[0] > 0 and levels[-1] / levels[0] >= 8:
                axes.set_xscale("log")
            if len(levels) <= 10:
                axes.set_xticks(levels, [f"{level:g}" for level in levels])
                axes.xaxis.set_minor_locator(NullLocator())
            axes.set(
                xlabel=as_typed(factor_name(self.x)), ylabel=metric_axis(metric, len(self.metrics))
            )
            bounds += draw_bounds(axes, by_cell.values(), metric)
        shared_legend(
            figure, max(places, key=lambda axes: len(axes.get_legend_handles_labels()[1]))
        )
        absent = [line for line in lines if not any(result[m, line] for m in self.metrics)]
        return figure, bounds + nothing_yet(absent, around.section)
