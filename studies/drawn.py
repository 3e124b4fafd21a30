"""The figures of a report with what is said about them and the numbers behind them."""

from dataclasses import dataclass, field

import matplotlib
from matplotlib.figure import Figure

from studies.captions import figure_caption, notices
from studies.collect import Record
from studies.comparison import Comparison
from studies.comparison_part import KINDS, comparison_listing, draw_comparison
from studies.data_maps import data_maps, maps_caption, maps_listing
from studies.data_maps_figure import draw_data_maps
from studies.data_of_runs import DataOfRuns
from studies.figure_style import LOOK, render
from studies.figures import add_title, draw_figure
from studies.listing import Listing
from studies.published_numbers import published_fact
from studies.report_section import ComparisonSpec, FigureSpec, Section
from studies.target_error import TargetError
from studies.target_error_figure import draw_target_error, target_error_caption, target_error_listings


@dataclass(frozen=True)
class Drawn:
    """A figure with what is said about it; no figure where its runs have nothing to draw yet."""

    spec: FigureSpec
    figure: Figure | None
    caption: list[str]
    listings: list[Listing] = field(default_factory=list)  # its numbers
    svg: bytes = b""


def drawn_figure(
    spec: FigureSpec, records: list[Record], section: Section, paired: list[str], errors: TargetError | None, data: DataOfRuns
) -> Drawn:
    """A figure of the `figures` of a report."""
    caption = [*figure_caption(spec, spec.select(records), section, paired), *published_fact(spec.published)]
    if spec.kind == "data_map":
        return _drawn_maps(spec, spec.select(records), section, caption, data)
    if errors is None:
        figure, said = draw_figure(spec, records, section, paired, data)
        return Drawn(spec, figure, [*caption, *said], svg=render(figure, "svg") if figure else b"")
    if errors.note:
        return Drawn(spec, None, [*caption, f"Not drawn: {errors.note}."])
    with matplotlib.rc_context(LOOK):
        figure = draw_target_error(spec, errors, section)
        add_title(figure, spec, spec.select(records))
    listings = target_error_listings(spec, errors, section, caption)
    return Drawn(spec, figure, [*caption, *target_error_caption(spec, errors, section)], listings, render(figure, "svg"))


def _drawn_maps(spec: FigureSpec, records: list[Record], section: Section, caption: list[str], data: DataOfRuns) -> Drawn:
    maps, absent = data_maps(spec, records, data)
    if not maps:
        return Drawn(spec, None, [*caption, *absent])
    with matplotlib.rc_context(LOOK):
        figure = draw_data_maps(maps, section)
        add_title(figure, spec, records)
    listing = maps_listing(spec, maps, records, section)
    return Drawn(spec, figure, [*caption, *maps_caption(spec, maps), *absent], [listing], render(figure, "svg"))


def drawn_comparison(
    spec: ComparisonSpec, found: Comparison | str, notes: list[str], records: list[Record], section: Section
) -> list[Drawn]:
    """Its figures; the last one brings the table of all numbers along."""
    caption = [*notices(records, section.scale), *notes]
    if isinstance(found, str):
        return [Drawn(FigureSpec(spec.name, spec.title), None, [*caption, f"Not drawn: {found}."])]
    drawn = []
    for kind, name in KINDS.items():
        figure, note = draw_comparison(kind, found, section)
        listings = [comparison_listing(spec, found, section, caption)] if kind == list(KINDS)[-1] else []
        of_kind = FigureSpec(f"{spec.name}-{kind}", f"{spec.title}: {name}", kind=kind)
        said = [*caption, note or found.probe_set, *published_fact((spec.published or {}).get(kind, ""))]
        drawn.append(Drawn(of_kind, figure, said, listings, render(figure, "svg") if figure else b""))
    return drawn
