"""The figures of a comparison between runs: the loss on the way from one method to another, and how
alike runs are.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from callbacks.figures.figure_text import as_typed
from callbacks.uncertainty_figures import BLUE, GREY, ORANGE
from studies.analysis.comparison.comparison import NAMES, Comparison, PairLine, Row, span
from studies.figures.figure_style import COLORS, LOOK, WIDTH

CURVES = (
    ("plain", "barrier", "plain", BLUE, "-"),
    ("reestimated", "reestimated_barrier", "BatchNorm re-estimated", ORANGE, "--"),
)
Label = Callable[[Any], str]


def draw_barriers(comparison: Comparison, label: Label = str) -> Figure | None:
    """The loss between two methods of one seed: thin lines are seeds, thick ones their mean.

    None where no methods share a seed.
    """
    result = {
        pair: lines
        for pair in combinations(comparison.methods, 2)
        if (lines := [line for line in comparison.lines if line.methods == pair])
    }
    if not result:
        return None
    with matplotlib.rc_context(LOOK):
        across = min(len(result), 2)
        down = -(-len(result) // across)
        figure = Figure(
            figsize=(WIDTH if across == 1 else 7.2, 0.7 + 2.9 * down), layout="constrained"
        )
        grid = figure.subplots(down, across, squeeze=False)
        for axes in grid.flat[len(result) :]:
            axes.set_axis_off()
        for axes, (pair, lines) in zip(grid.flat, result.items(), strict=False):
            _draw_lines(axes, lines)
            # too long for the axis where names are
            axes.set_title(f"{as_typed(label(pair[0]))} (0) to {as_typed(label(pair[1]))} (1)")
            axes.set_xlabel("share of the way")
            axes.set_ylabel("cross-entropy to annotators (nats)")
        items = span([line.items for line in comparison.lines])
        figure.suptitle(
            _title("Loss on the straight line between two methods", comparison, f"{items} items"),
            fontsize=10,
        )
    return figure


def _draw_lines(axes: Axes, lines: list[PairLine]) -> None:
    for curve, height, name, color, style in CURVES:
        losses = [values for result in lines if (values := getattr(result.line, curve)) is not None]
        if not losses:
            continue
        alphas = lines[0].line.alphas
        axes.plot(alphas, np.transpose(losses), style, color=color, linewidth=0.7, alpha=0.45)
        barrier = np.mean([getattr(result.line, height) for result in lines])
        message = (
            f"{name}: mean barrier {barrier:.3f} over {len(losses)} seed{'s' * (len(losses) > 1)}"
        )
        axes.plot(alphas, np.mean(losses, axis=0), style, color=color, linewidth=2.2, label=message)
    axes.set(xlim=(0, 1), ylim=(0, 1.05 * axes.get_ylim()[1]))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19), frameon=False)


def draw_similarities(comparison: Comparison, measure: str, label: Label = str) -> Figure | None:
    """Every pair of runs as a dot, and the mean of each row just below.

    None where no pair has the measure.
    """
    rows = [
        row
        for row in comparison.rows
        if row.measure == measure and row.seeds != "all" and row.pairs
    ]
    if not rows:
        return None
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(WIDTH + 1.2, 1.2 + 0.5 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        for place, row in enumerate(rows):
            within = row.methods[0] == row.methods[1]
            color = (
                COLORS[comparison.methods.index(row.methods[0]) % len(COLORS)] if within else GREY
            )
            values = np.array([v.value for v in comparison.select(measure, row.methods, row.seeds)])
            axes.scatter(
                values,
                np.full(len(values), place - 0.14),
                s=14,
                color=color,
                alpha=0.55,
                linewidths=0,
            )
            axes.plot(row.mean, place + 0.16, "|", color=color, markersize=11, markeredgewidth=2)
            axes.annotate(
                f"{row.mean:.3f}",
                (row.mean, place + 0.16),
                (6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
            axes.axhline(place + 0.5, color="#dddddd", linewidth=0.6, zorder=0)
        axes.set_yticks(range(len(rows)), [_row_name(row, label) for row in rows])
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel=NAMES[measure])
        axes.margins(x=0.12)
        low, high = axes.get_xlim()
        room = max(0.0, 0.1 - (high - low)) / 2  # or the smallest differences would look large
        axes.set_xlim(low - room, high + room)
        axes.tick_params(axis="y", length=0)
        figure.suptitle(
            _title("Pairs of runs (dots) and their mean", comparison, "items"), fontsize=10
        )
    return figure


def _row_name(row: Row, label: Label) -> str:
    items = f"{row.pairs} pair{'s' * (row.pairs > 1)}, {span(row.items)} items"
    if row.methods[0] == row.methods[1]:
        return f"within {as_typed(label(row.methods[0]))}\n{items}"
    return (
        f"{as_typed(label(row.methods[0]))} and {as_typed(label(row.methods[1]))}, "
        f"{'one seed' if row.seeds == 'same' else 'two seeds'}\n{items}"
    )


def _title(what: str, comparison: Comparison, items: str) -> str:
    crowd = "\nSIMULATED annotators" if comparison.simulated_annotators else ""
    return (
        f"{what}\n{as_typed(comparison.network)} on {as_typed(comparison.dataset)}, {items} "
        f"that neither run trained on{crowd}"
    )
