"""Reliability and entropy of the test items of all seeds."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from callbacks.prediction_table import class_probs, number_of_classes, read_predictions
from callbacks.uncertainty_figures import draw_entropy_curve, draw_reliability, mark_equal_entropies
from core.errors import InputError
from studies.analysis.collect import Record
from studies.figures.figure_spec import Around, DrawnFigure, FigureSpec
from studies.figures.figure_style import line_style, nothing_yet
from studies.schema.grid_options import Factor
from studies.schema.options import option


@dataclass(frozen=True, kw_only=True)
class Curves(FigureSpec):
    """Smooth reliability, and the model's entropy by that of annotators, on the test items of all
    seeds; from predictions.parquet.
    """

    example: ClassVar[str] = """\
name: reliability
kind: curves
rows: data.delivery
where: {data.votes_per_item: 5}
"""
    needs_predictions: ClassVar[bool] = True

    rows: str = option(Factor(), "one curve for each of its levels")

    def caption(self, records: list[Record], seeds: int) -> list[str]:
        """What both panels are."""
        return [
            f"Test items of {seeds} seeds pooled. Left: smooth reliability of the top class, wide "
            "where many items lie; smooth ECE is that of the pool. Right: the model's mean entropy "
            "over bins of the annotators' entropy. Dashed: perfect agreement."
        ]

    def draw(self, found: list[Record], around: Around) -> DrawnFigure:
        """Two panels, where predictions were written."""
        figure = Figure(
            figsize=(7.0, 3.5 + 0.18 * len(self.levels[self.rows])), layout="constrained"
        )
        left, right = figure.subplots(1, 2)
        absent, drawn, used = [], 0, 0
        for place, row in enumerate(self.levels[self.rows]):
            of_row = [r for r in found if r.factors[self.rows] == row]
            folders = [r.folder for r in of_row if (r.folder / "predictions.parquet").is_file()]
            if not folders:
                absent.append(row)
                continue
            probs, target_probs = pooled_predictions(folders)
            style = line_style(place)
            label = around.section.label(row)
            draw_reliability(left, probs, target_probs, style["color"], label)
            draw_entropy_curve(right, probs, target_probs, style["color"], label)
            for axes in (left, right):
                axes.get_lines()[-1].set_linestyle(style["linestyle"])
            drawn, used = drawn + 1, used + len(folders)
        if not drawn:
            return None, [
                "Not drawn: none of its runs has a predictions.parquet, which cli.py predict "
                "writes."
            ]
        mark_equal_entropies(right)
        for axes in (left, right):
            _legend_below(axes)
        some = f"Drawn from the {used} of {len(found)} runs that have a predictions.parquet."
        return figure, [some] * (used < len(found)) + nothing_yet(absent, around.section)


def pooled_predictions(folders: list[Path]) -> tuple[Tensor, Tensor]:
    """The model's and the annotators' distributions of the test items of several runs, one after
    the other.
    """
    tables = [read_predictions(folder, "test") for folder in folders]
    other = [
        folder
        for folder, table in zip(folders, tables, strict=True)
        if number_of_classes(table) != number_of_classes(tables[0])
    ]
    if other:
        raise InputError(
            f"{other[0] / 'predictions.parquet'} has other classes than those of {folders[0]}; "
            "run predict again."
        )
    model, annotators = (
        np.concatenate([class_probs(table, who) for table in tables])
        for who in ("model", "annotators")
    )
    return torch.from_numpy(model), torch.from_numpy(annotators)


def _legend_below(axes: Axes) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False)
