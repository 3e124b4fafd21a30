"""The figures of a report with what is said about them and the numbers behind them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import matplotlib
from matplotlib.figure import Figure

from callbacks.figures.drawing import reason
from core.errors import InputError
from studies.analysis.collect import Record
from studies.analysis.comparison.comparison import Comparison
from studies.analysis.data_of_runs import DataOfRuns
from studies.analysis.target_error import TargetError
from studies.figures.data_maps import data_maps, maps_caption, maps_listing
from studies.figures.data_maps_figure import draw_data_maps
from studies.figures.figure_style import LOOK, render
from studies.figures.figures import add_title, draw_figure
from studies.figures.target_error_figure import (
    draw_target_error,
    target_error_caption,
    target_error_listings,
)
from studies.plan.published_numbers import published_fact
from studies.report.comparison_part import KINDS, comparison_listing, draw_comparison
from studies.report.section import ComparisonSpec, FigureSpec, Section
from studies.tables.captions import figure_caption, notices
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


def drawn(
    spec: FigureSpec,
    draw: Callable[[], tuple[Figure | None, list[str]]],
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


def drawn_figure(
    spec: FigureSpec,
    records: list[Record],
    section: Section,
    paired: list[str],
    errors: TargetError | None,
    data: DataOfRuns,
) -> RenderedFigure:
    """A figure of the `figures` of a report."""
    caption = [
        *figure_caption(spec, spec.select(records), section, paired),
        *published_fact(spec.published),
    ]
    if spec.kind == "data_map":
        return _drawn_maps(spec, spec.select(records), section, caption, data)
    if errors is None:
        return drawn(spec, lambda: draw_figure(spec, records, section, paired, data), caption)
    if errors.note:
        return RenderedFigure(spec, None, [*caption, f"Not drawn: {errors.note}."])

    def draw() -> tuple[Figure, list[str]]:
        figure = draw_target_error(spec, errors, section)
        add_title(figure, spec, spec.select(records))
        return figure, target_error_caption(spec, errors, section)

    return drawn(spec, draw, caption, target_error_listings(spec, errors, section, caption))


def _drawn_maps(
    spec: FigureSpec, records: list[Record], section: Section, caption: list[str], data: DataOfRuns
) -> RenderedFigure:
    maps, absent = data_maps(spec, records, data)
    if not maps:
        return RenderedFigure(spec, None, [*caption, *absent])

    def draw() -> tuple[Figure, list[str]]:
        figure = draw_data_maps(maps, section)
        add_title(figure, spec, records)
        return figure, [*maps_caption(spec, maps), *absent]

    return drawn(spec, draw, caption, [maps_listing(spec, maps, records, section)])


def drawn_comparison(
    spec: ComparisonSpec,
    result: Comparison | str,
    notes: list[str],
    records: list[Record],
    section: Section,
) -> list[RenderedFigure]:
    """Its figures; the last one brings the table of all numbers along."""
    caption = [*notices(records, section.scale), *notes]
    if isinstance(result, str):
        return [
            RenderedFigure(
                FigureSpec(spec.name, spec.title), None, [*caption, f"Not drawn: {result}."]
            )
        ]
    figures = []
    for kind, name in KINDS.items():
        listings = (
            [comparison_listing(spec, result, section, caption)] if kind == list(KINDS)[-1] else []
        )
        of_kind = FigureSpec(f"{spec.name}-{kind}", f"{spec.title}: {name}", kind=kind)
        fact = published_fact((spec.published or {}).get(kind, ""))

        def draw(kind: str = kind, fact: list[str] = fact) -> tuple[Figure | None, list[str]]:
            figure, note = draw_comparison(kind, result, section)
            return figure, [note or result.probe_set, *fact]

        figures.append(drawn(of_kind, draw, caption, listings))
    return figures
