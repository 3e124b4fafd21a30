"""The figure of `describe`: floor and ceiling by votes per item, and what a budget buys."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from callbacks.figures.figure_text import TITLE, as_typed
from metrics.worth import Spending

# from the colour-blind safe palette of Okabe and Ito
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"
SHOWN = MEASURE, CORRELATION = "kl", "entropy_spearman"  # scores


def draw_worth(ways: Sequence[Spending], each: float, title: str) -> Figure:
    """Two panels: what a model can gain in KL, by votes per item; and what as many votes are worth
    that are spent on many items or on few. `each` is how many votes items have on average.
    """
    figure = Figure(figsize=(10, 4.2), dpi=120, layout="constrained")
    first, second = figure.subplots(1, 2)
    _draw_bounds(first, ways)
    _draw_budget(second, ways)
    second_line = [f"{way.votes}\n{way.items:,}" for way in ways]
    for axes, ticks in ((first, [str(way.votes) for way in ways]), (second, second_line)):
        axes.set_xscale("log")
        axes.set_xticks([way.votes for way in ways], ticks, fontsize=8)
        axes.minorticks_off()
        axes.axvline(each, color=GREY, linestyle=":", linewidth=1)
        axes.spines[["top"]].set_visible(False)
    first.spines[["right"]].set_visible(False)
    first.set_xlabel("votes per item")
    second.set_xlabel("votes per item, and how many items they pay for")
    figure.suptitle(as_typed(title, TITLE), fontsize=11)
    return figure


def _draw_bounds(axes: Axes, ways: Sequence[Spending]) -> None:
    votes, ends = _curves(ways, MEASURE)
    axes.fill_between(votes, ends["ceiling"], ends["floor"], color=GREY, alpha=0.12, linewidth=0)
    floor = "floor: the best constant, skill 0 %"
    axes.plot(votes, ends["floor"], color=ORANGE, marker="o", markersize=4, label=floor)
    ceiling = "ceiling: knows every item's distribution, skill 100 %"
    axes.plot(votes, ends["ceiling"], color=BLUE, marker="o", markersize=4, label=ceiling)
    axes.fill_between(votes, ends["low"], ends["high"], color=BLUE, alpha=0.25, linewidth=0)
    axes.set_ylim(0, 1.25 * max(*ends["floor"], 1e-3))
    axes.legend(loc="upper right", framealpha=1, edgecolor="none", fontsize=9)
    axes.set_ylabel("KL to annotators (nats)")
    axes.set_title("What a model can gain", fontsize=10)


def _draw_budget(axes: Axes, ways: Sequence[Spending]) -> None:
    errors = {way.votes: 100 * way.error for way in ways if way.error is not None}
    axes.plot(list(errors), list(errors.values()), color=ORANGE, marker="o", markersize=4)
    axes.set_ylabel("standard error of skill (points)", color=ORANGE)
    axes.set_ylim(0)
    other = axes.twinx()
    votes, ends = _curves(ways, CORRELATION)
    other.fill_between(votes, ends["low"], ends["high"], color=BLUE, alpha=0.25, linewidth=0)
    other.plot(votes, ends["ceiling"], color=BLUE, marker="s", markersize=4)
    other.set_ylim(0, 1)
    other.set_ylabel("ceiling of entropy correlation (Spearman)", color=BLUE)
    other.spines[["top"]].set_visible(False)
    axes.set_title("The same number of votes, spent otherwise", fontsize=10)


def _curves(ways: Sequence[Spending], name: str) -> tuple[list[int], dict[str, np.ndarray]]:
    """Votes per item, and a score's floor, ceiling and interval with so many."""
    known = {way.votes: way.bounds[name] for way in ways if way.bounds[name].ceiling is not None}
    ends = ("floor", "ceiling", "low", "high")
    return list(known), {
        end: np.array([getattr(bounds, end) for bounds in known.values()], float) for end in ends
    }
