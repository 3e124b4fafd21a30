"""Floor and ceiling of a score in a figure: thin lines where they are in or near what is drawn."""

import math
from collections.abc import Iterable

from matplotlib.axes import Axes

from callbacks.uncertainty_figures import GREY
from studies.analysis.collect import Record
from studies.tables.cell_worth import CellWorth, Ends, shared_ends, span, worth_of
from studies.tables.measures import measure

STYLES = {"floor": "--", "ceiling": ":"}
WIDE = 0.05  # of floor - ceiling: by how much the bounds of what is drawn together may differ


def draw_bounds(
    axes: Axes, groups: Iterable[list[Record]], metric: str, vertical: bool = False, note: str = ""
) -> list[str]:
    """Add what the groups of runs in a panel have for floor and ceiling, after all else is drawn;
    returns what is to be said about them.

    An axis grows by its own length at most. What lies farther off is said and not drawn. So it is
    where groups differ, as on different datasets.
    """
    worths = [worth for records in groups if (worth := worth_of(records, metric))]
    name, digits = measure(metric).name, measure(metric).digits
    view = axes.get_xlim() if vertical else axes.get_ylim()
    said = []
    for bound in STYLES:
        ends = shared_ends(getattr(worth, f"{bound}_ends") for worth in worths)
        if ends:
            where = _differ(worths, bound) or _draw_line(axes, view, ends, bound, vertical)
            said.append(f"{bound} {span(ends, digits)}{where}")
    return [f"{name}{note}: {', '.join(said)}."] if said else []


def _differ(worths: list[CellWorth], bound: str) -> str:
    values = [value for w in worths if not math.isnan(value := getattr(w, bound))]
    room = max((w.room for w in worths if not math.isnan(w.room)), default=0.0)
    differ = max(values) - min(values) > WIDE * room
    return " (not drawn: it is not the same for all)" if differ else ""


def _draw_line(axes: Axes, view: Ends, ends: Ends, bound: str, vertical: bool) -> str:
    """A line with its name at its end, or a band where it is an interval; `view` is what the axis
    showed before.
    """
    (start, end), (low, high) = view, ends
    if low < start - (end - start) or high > end + (end - start):
        return " (beyond the axis)"
    start, end = axes.get_xlim() if vertical else axes.get_ylim()
    margin = 0.04 * (end - start)
    limits = min(start, low - margin), max(end, high + margin)
    line, band = (axes.axvline, axes.axvspan) if vertical else (axes.axhline, axes.axhspan)
    middle = (low + high) / 2
    if low < high:
        band(low, high, color=GREY, alpha=0.15, linewidth=0, zorder=0)
    else:
        line(middle, color=GREY, linewidth=0.8, linestyle=STYLES[bound], zorder=0.5)
    text = {"fontsize": 8, "color": GREY, "va": "bottom"}
    if vertical:
        axes.set_xlim(limits)
        axes.text(middle, 1, bound, transform=axes.get_xaxis_transform(), ha="center", **text)
    else:
        axes.set_ylim(limits)
        axes.text(1, middle, bound, transform=axes.get_yaxis_transform(), ha="right", **text)
    return ""
