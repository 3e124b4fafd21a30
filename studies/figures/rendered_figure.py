"""The figures of a report as files, with what is said about them and the numbers behind them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from callbacks.figures.drawing import reason
from callbacks.figures.figure_text import TITLE, as_typed
from core.errors import InputError
from studies.analysis.collect import Record
from studies.figures.figure_spec import Around, DrawnFigure, FigureSpec, number_of_seeds
from studies.figures.figure_style import LOOK, render
from studies.plan.published_numbers import published_fact
from studies.tables.captions import notices, simulated_mark
from studies.tables.listing import Listing


@dataclass(frozen=True)
class RenderedFigure:
    """A figure with what is said about it; no figure where its runs have nothing to draw yet, or
    where drawing failed.
    """

    spec: FigureSpec
    figure: Figure | None
    caption: list[str]
    listings: list[Listing] = field(default_factory=list)  # its numbers
    svg: bytes = b""
    png: bytes = b""


def rendered(
    spec: FigureSpec,
    draw: Callable[[], DrawnFigure],
    caption: list[str],
    listings: list[Listing] | None = None,
) -> RenderedFigure:
    """A figure as both kinds of file, with what `draw` says about it after the caption.

    A figure that cannot be drawn says why in its place, so that it costs neither the other figures
    nor the tables; a mistake in what the user gave is one all the same.
    """
    listings = listings or []
    try:
        with matplotlib.rc_context(LOOK):
            figure, messages = draw()
        files = (render(figure, "svg"), render(figure, "png")) if figure else (b"", b"")
    except InputError:
        raise
    except Exception as error:
        return RenderedFigure(spec, None, [*caption, f"Not drawn: {reason(error)}"], listings)
    return RenderedFigure(spec, figure, [*caption, *messages], listings, *files)


def rendered_figure(
    spec: FigureSpec, records: list[Record], found: Any, around: Around
) -> RenderedFigure:
    """A figure of the `figures` of a report, of what it computed from its finished runs."""
    caption = [
        *notices(records, around.section.scale),
        *spec.caption(records, number_of_seeds(records, around.paired)),
        *published_fact(spec.published),
    ]
    if not records:
        return RenderedFigure(spec, None, [*caption, "Not drawn: none of its runs is finished."])

    def draw() -> DrawnFigure:
        figure, messages = spec.draw(found, around)
        if figure:
            add_title(figure, spec, records)
        return figure, messages

    return rendered(spec, draw, caption, spec.listings(found, caption, around))


def add_title(figure: Figure, spec: FigureSpec, records: list[Record]) -> None:
    """Its title, and whether its annotators are simulated: figures travel without captions."""
    mark = simulated_mark(records)
    title = as_typed(spec.title, TITLE, width=int(12 * figure.get_figwidth()))
    figure.suptitle(title + (f"\n{mark}" if mark else ""), fontsize=10)
