"""How the figures of a report look: at column width, colour-blind safe, nothing below 8 points."""

import io
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from callbacks.figures.figure_text import TITLE, as_typed
from studies.tables.measures import measure

# Okabe and Ito's palette; its yellow is left out, because it does not show on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS, STYLES = "osD^vPX", ("-", "--", ":", "-.")
TEXT = {
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.titlesize": 9,
}
LOOK: Any = {**TEXT, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "report"}
WIDTH, FULL_WIDTH = 5.0, 7.2  # inches: of one panel, and of several side by side


def render(figure: Figure, kind: str, dpi: int = 200) -> bytes:
    """The file's content; equal figures give equal files."""
    stream = io.BytesIO()
    with matplotlib.rc_context(LOOK):
        figure.savefig(
            stream, format=kind, dpi=dpi, metadata={"Date": None} if kind == "svg" else None
        )
    return stream.getvalue()


def line_style(place: int) -> dict[str, Any]:
    """Colour and marker of one of several lines; solid until the colours are used up."""
    style = STYLES[place // len(COLORS) % len(STYLES)]
    return {
        "color": COLORS[place % len(COLORS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": style,
    }


def panels(number: int, height: float, across: int = 3) -> tuple[Figure, list[Axes]]:
    """A figure of several panels, row by row; a single one has the width of a column.

    `height` is that of a row, in inches.
    """
    across = min(number, across)
    down = -(-number // across)
    figure = Figure(
        figsize=(WIDTH if across == 1 else FULL_WIDTH, height * down), layout="constrained"
    )
    places = list(figure.subplots(down, across, squeeze=False).flat)
    for unused in places[number:]:
        unused.set_axis_off()
    return figure, places[:number]


def wrapped(label: str, length: int = 36) -> str:
    """A long label of an axis on several lines, broken after commas and before units."""
    if len(label) <= length:
        return label
    return (
        label.replace(", ", ",\n").replace(" (", "\n(")
        if len(label) > 1.5 * length
        else label.replace(", ", ",\n")
    )


def shared_legend(figure: Figure, axes: Axes) -> None:
    """One legend for all panels, below them."""
    handles, labels = axes.get_legend_handles_labels()
    across = 2 if figure.get_figwidth() < FULL_WIDTH else 4
    if labels and max(map(len, labels)) > 40:
        across //= 2
    figure.legend(handles, labels, loc="outside lower center", frameon=False, ncols=across)


def metric_axis(metric: str, number: int) -> str:
    """The label of an axis in one of so many panels; narrower ones need more lines."""
    return wrapped(as_typed(measure(metric).axis, TITLE), 36 if number == 1 else 22)


def nothing_yet(levels: list[Any], section: Any) -> list[str]:
    """Which levels have nothing to draw yet, if any."""
    listed = ", ".join(section.label(level) for level in levels)
    return [f"Nothing to draw yet for {listed}."] if levels else []
