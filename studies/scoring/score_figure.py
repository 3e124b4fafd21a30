"""Reliability and entropy of the judged items, in one figure."""

from collections.abc import Mapping

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure

from callbacks.figures.figure_text import TITLE, as_typed
from callbacks.uncertainty_figures import (
    draw_entropies,
    draw_entropy_curve,
    draw_reliability,
    mark_equal_entropies,
)
from studies.figures.figure_style import LOOK, line_style, render

WIDTH = 8.4  # inches


def score_figure(tables: Mapping[str, np.ndarray], people: np.ndarray, title: str) -> bytes:
    """An SVG. Of one table every item's entropy is shown, of several their means."""
    annotators = torch.from_numpy(people)
    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(WIDTH, 4.2 + 0.18 * (len(tables) - 1)), layout="constrained")
        left, right = figure.subplots(1, 2)
        for place, (name, table) in enumerate(tables.items()):
            model, style = torch.from_numpy(table), line_style(place)
            draw_reliability(left, model, annotators, style["color"], name)
            left.get_lines()[-1].set_linestyle(style["linestyle"])
            if len(tables) == 1:
                draw_entropies(right, model, annotators)
                continue
            draw_entropy_curve(right, model, annotators, style["color"], name)
            right.get_lines()[-1].set_linestyle(style["linestyle"])
        if len(tables) > 1:
            mark_equal_entropies(right)
        for axes in (left, right):
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)
        figure.suptitle(as_typed(title, TITLE, width=90), fontsize=10)
        return render(figure, "svg")
