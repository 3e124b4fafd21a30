"""Every seed as a dot, and their mean with its interval."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from callbacks.figures.figure_text import as_typed
from studies.analysis.collect import Record
from studies.analysis.statistics import bootstrap_interval, summary
from studies.figures.bound_lines import draw_bounds
from studies.figures.figure_spec import Around, DrawnFigure, FigureSpec
from studies.figures.figure_style import COLORS, metric_axis, nothing_yet, panels
from studies.schema.grid_options import Factor, Metrics
from studies.schema.options import option
from studies.tables.measures import factor_name
from studies.tables.tables import finite_units


@dataclass(frozen=True, kw_only=True)
class Points(FigureSpec):
    """Every seed as a dot, row by row, and the mean with its interval just below; one panel per
    metric.
    """

    example: ClassVar[str] = """\
name: seeds
kind: points
metric: [soft_nll, accuracy]
rows: data.delivery
where: {data.votes_per_item: 5}
"""

    metric: Any = option(Metrics(), "what is drawn")
    rows: str = option(Factor(), "one row for each of its levels")

    def caption(self, records: list[Record], seeds: int) -> list[str]:
        """What dots, ticks and bars are."""
        return [
            f"Dots: single seeds ({seeds}). Tick and bar: their mean and its 95 % bootstrap (BCa) "
            "interval."
        ]

    def draw(self, found: list[Record], around: Around) -> DrawnFigure:
        """One panel per metric."""
        rows = self.levels[self.rows]
        values = {
            (metric, row): finite_units(found, metric, {self.rows: row}, around.paired)
            for metric in self.metrics
            for row in rows
        }
        if not any(len(v) for v in values.values()):
            return None, [f"Not drawn: no finished run has {', '.join(self.metrics)}."]
        figure, places = panels(len(self.metrics), 1.3 + 0.42 * len(rows))
        by_row = [[r for r in found if r.factors[self.rows] == row] for row in rows]
        bounds = []
        for axes, metric in zip(places, self.metrics, strict=True):
            for place, row in enumerate(rows):
                _draw_seeds(axes, values[metric, row], place)
            axes.set_yticks(
                range(len(rows)),
                [as_typed(around.section.label(row)) for row in rows]
                if axes is places[0]
                else [""] * len(rows),
            )
            axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel=metric_axis(metric, len(self.metrics)))
            axes.tick_params(axis="y", length=0)
            bounds += draw_bounds(axes, by_row, metric, vertical=True)
            axes.xaxis.set_major_locator(MaxNLocator(6 if len(places) == 1 else 4))
        if all(isinstance(row, int | float) for row in rows):  # numbers do not say what they are
            places[0].set_ylabel(as_typed(factor_name(self.rows)))
        absent = [row for row in rows if not any(len(values[m, row]) for m in self.metrics)]
        return figure, bounds + nothing_yet(absent, around.section)


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
