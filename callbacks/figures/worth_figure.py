"""Floor and ceiling by votes per item, and what a budget of votes buys: the figure of `describe`."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from callbacks.figures.figure_text import TITLE, as_typed
from metrics.worth import Spending

# from the colour-blind safe palette of Okabe and Ito
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"
MEASURE, CORRELATION = "kl", "entropy_spearman"


def draw_worth(ways: Sequence[Spending], each: float, title: str) -> Figure:
    """Two panels: what a model can gain in KL, by votes per item; and what as many votes are worth
    that are spent on many items or on few. `each` is how many votes items have on average.
    """
    figure = Figure(figsize=(10, 4.2), dpi=120, layout="constrained")
    first, second = figure.subplots(1, 2)
    _draw_bounds(first, ways)
    _draw_budget(second, ways)
    for axes in (first, second):
        axes.set_xscale("log")
        axes.set_xticks([way.votes for way in ways], [str(way.votes) for way in ways])
        axes.minorticks_off()
        axes.axvline(each, color=GREY, linestyle=":", linewidth=1)
        axes.spines[["top"]].set_visible(False)
    first.spines[["right"]].set_visible(False)
    first.set_xlabel("votes per item")
    second.set_xlabel("votes per item (items at equal cost)")
    figure.suptitle(as_typed(title, TITLE), fontsize=11)
    return figure


def _draw_bounds(axes: Axes, ways: Sequence[Spending]) -> None:
    known = [way for way in ways if way.bounds[MEASURE].ceiling is not None]
    votes = [way.votes for way in known]
    floors, ceilings, lows, highs = (
        [getattr(way.bounds[MEASURE], end) for way in known]
        for end in ("floor", "ceiling", "low", "high")
    )
    axes.fill_between(votes, ceilings, floors, color=GREY, alpha=0.12, linewidth=0)
    axes.plot(votes, floors, color=ORANGE, marker="o", markersize=4)
    axes.plot(votes, ceilings, color=BLUE, marker="o", markersize=4)
    axes.fill_between(votes, lows, highs, color=BLUE, alpha=0.25, linewidth=0)
    axes.annotate(
        "floor: the best constant, skill 0 %",
        (votes[-1], floors[-1]),
        (0, 6),
        textcoords="offset points",
        color=ORANGE,
        ha="right",
    )
    axes.annotate(
        "ceiling: knows every item's distribution, skill 100 %",
        (votes[-1], ceilings[-1]),
        (0, 8),
        textcoords="offset points",
        color=BLUE,
        ha="right",
    )
    axes.set_ylim(0)
    axes.set_ylabel("KL to annotators (nats)")
    axes.set_title("What a model can gain", fontsize=10)


def _draw_budget(axes: Axes, ways: Sequence[Spending]) -> None:
    known = [way for way in ways if way.error is not None]
    votes = [way.votes for way in known]
    axes.plot(
        votes, [100 * (way.error or 0) for way in known], color=ORANGE, marker="o", markersize=4
    )
    axes.set_ylabel("standard error of skill (points)", color=ORANGE)
    axes.set_ylim(0)
    for way in known:
        axes.annotate(
            f"{way.items:,}",
            (way.votes, 0),
            (0, 4),
            textcoords="offset points",
            ha="center",
            rotation=90,
            fontsize=8,
            color=GREY,
        )
    other = axes.twinx()
    bounds = {way.votes: way.bounds[CORRELATION] for way in ways}
    bounds = {votes: bound for votes, bound in bounds.items() if bound.ceiling is not None}
    other.fill_between(
        list(bounds),
        [bound.low for bound in bounds.values()],
        [bound.high for bound in bounds.values()],
        color=BLUE,
        alpha=0.25,
        linewidth=0,
    )
    other.plot(
        list(bounds),
        [bound.ceiling for bound in bounds.values()],
        color=BLUE,
        marker="s",
        markersize=4,
    )
    other.set_ylim(0, 1)
    other.set_ylabel("ceiling of entropy correlation (Spearman)", color=BLUE)
    other.spines[["top"]].set_visible(False)
    axes.set_title("The same number of votes, spent otherwise", fontsize=10)
