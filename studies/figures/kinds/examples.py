"""Example items as a figure: the item itself, and beside it the distributions of annotators and of
each model over the same classes.
"""

import textwrap
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from callbacks.figures.figure_text import as_typed, printable
from callbacks.uncertainty_figures import GREY
from studies.analysis.collect import Record
from studies.figures.chosen_items import RULES, Example, find_examples
from studies.figures.figure_spec import Around, DrawnFigure, FigureSpec
from studies.figures.figure_style import COLORS, FULL_WIDTH
from studies.report.section import Section
from studies.schema.grid_options import Factor
from studies.schema.options import ABSENT, Choice, Number, option

# inches: height of a class, of what is around the bars, and of the lowest row
BAR, MARGIN, LEAST = (
    0.17,
    0.62,
    1.25,
)
LINE, ITEM = 0.15, 2.2  # inches: height of a line of text, and width of an item
LETTERS, LINES = 34, 12  # of a text: in a line of that width, and the most lines that are shown
RULES_IN_WORDS = {
    "disagreement": "those of the test items on which annotators disagree most",
    "same_class": "those on which annotators disagree most, of the test items for which every "
    "model predicts their majority class",
    "spread": "test items from the largest to the smallest agreement of annotators, in equal "
    "steps of rank",
}


@dataclass(frozen=True, kw_only=True)
class Examples(FigureSpec):
    """Items beside annotators' distribution and each model's, chosen by rule; from
    predictions.parquet of one seed, and the data. Never in a copy of the report.
    """

    example: ClassVar[str] = """\
name: items
kind: examples
rows: data.delivery
where: {data.votes_per_item: 5}
choose: disagreement
number: 3
"""
    needs_predictions: ClassVar[bool] = True
    shows_items: ClassVar[bool] = True

    rows: str = option(Factor(), "the models")
    panels: str = option(Factor(), "items of each of its levels (datasets)", default="")
    choose: str = option(
        Choice(*RULES),
        "where annotators disagree most; the same where all models predict their majority class; "
        "or from agreement to disagreement",
        default="disagreement",
    )
    number: int = option(Number(1, whole=True), "of items in each panel", default=3)

    def draw(self, found: list[Record], around: Around) -> DrawnFigure:
        """One row per item."""
        examples, absent = find_examples(self, found, around.paired, around.data)
        if not examples:
            return None, absent
        figure, messages = draw_examples(self, examples, around.section)
        return figure, messages + absent


def draw_examples(
    spec: Examples, examples: list[Example], section: Section
) -> tuple[Figure, list[str]]:
    """One row per example; panels (datasets) follow one another."""
    heights = [row_height(example) for example in examples]
    charts = 1 + len(spec.levels[spec.rows])
    figure = Figure(figsize=(FULL_WIDTH, sum(heights) + 0.4), layout="constrained")
    left = (FULL_WIDTH - ITEM) / charts
    places = figure.subplots(
        len(examples),
        1 + charts,
        squeeze=False,
        width_ratios=[ITEM, *[left] * charts],
        height_ratios=heights,
    )
    cut = 0
    for example, (item, *bars) in zip(examples, places, strict=True):
        cut += _draw_item(item, example, section)
        drawn = [("annotators", "", example.annotators)]
        drawn += [
            (section.label(level), f"KL {example.kl(level):.2f}", probs)
            for level, probs in example.models.items()
        ]
        for place, (axes, (name, note, probs)) in enumerate(zip(bars, drawn, strict=True)):
            # a model has its colour in other figures
            color = COLORS[(place - 1) % len(COLORS)] if place else GREY
            _draw_bars(axes, probs.numpy(), example.class_names if place == 0 else None, color)
            axes.set_title(
                "\n".join(filter(None, (as_typed(name, width=int(13 * left)), note or " "))),
                fontsize=8,
            )
            axes.set_xlabel("share of votes" if place == 0 else "probability", fontsize=8)
    messages = [
        f"Chosen by rule, not by hand: {RULES_IN_WORDS[spec.choose]}; ties go to the item that "
        "comes first.",
        "Bars: annotators' distribution, then each model's, of the first seed that has all of "
        "them. KL: of annotators' distribution to the model's, in nats.",
    ]
    if cut:
        messages.append(f"Cut to what fits (marked …): {cut} text{'s' * (cut > 1)}.")
    return figure, messages


def row_height(example: Example) -> float:
    """In inches: what the bars take, or the text, whichever is more."""
    text = (
        0
        if isinstance(example.item, Tensor)
        else min(len(broken(example.item)), LINES) * LINE + 0.35
    )
    return max(BAR * len(example.class_names) + MARGIN, text, LEAST)


def _draw_item(axes: Axes, example: Example, section: Section) -> bool:
    """The item under its dataset's name; returns whether a text was cut."""
    axes.set_axis_off()
    name = "" if example.panel is ABSENT else f"{as_typed(section.label(example.panel))}, "
    axes.set_title(f"{name}item {example.row}", fontsize=8, loc="left")
    if isinstance(example.item, Tensor):
        axes.imshow(example.item.permute(1, 2, 0).numpy(), interpolation="nearest")
        return False
    text, cut = fitted(printable(example.item), LINES)
    axes.text(
        0, 1, text, transform=axes.transAxes, fontsize=8, va="top", ha="left", parse_math=False
    )
    return cut


def _draw_bars(axes: Axes, probs: np.ndarray, names: tuple[str, ...] | None, color: str) -> None:
    axes.barh(np.arange(len(probs)), probs, color=color, height=0.8)
    axes.set(xlim=(0, 1), ylim=(len(probs) - 0.5, -0.5))
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_yticks(range(len(probs)), [as_typed(name, 40) for name in names or [""] * len(probs)])
    axes.tick_params(axis="y", length=0)


def fitted(text: str, lines: int) -> tuple[str, bool]:
    """A text broken into so many lines of a column, and whether its end had to go.

    >>> fitted("one two", 2), fitted("word " * 100, 1)
    (('one two', False), ('word word word word word word …', True))
    """
    whole = broken(text)
    if len(whole) <= lines:
        return "\n".join(whole), False
    return "\n".join(
        [
            *whole[: lines - 1],
            textwrap.shorten(whole[lines - 1], LETTERS - 2, placeholder="") + " …",
        ]
    ), True


def broken(text: str) -> list[str]:
    """Line by line, as wide as a column."""
    return [
        line
        for paragraph in text.strip().splitlines()
        for line in textwrap.wrap(paragraph, LETTERS)
    ]
