"""Data maps side by side: a column for each kind of labels, a row for each stratum, all on the same
axes and with the same colours.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from callbacks.cartography.figure import COLORS, STRATA, draw_stratum
from callbacks.figures.figure_text import as_typed
from studies.analysis.collect import Record
from studies.figures.data_maps import Maps, RunsMap, data_maps, maps_caption, maps_listing
from studies.figures.figure_spec import Around, DrawnFigure, FigureSpec
from studies.figures.figure_style import FULL_WIDTH
from studies.report.section import Section
from studies.schema.grid_options import Factor
from studies.schema.options import ABSENT, Number, option
from studies.tables.listing import Listing


@dataclass(frozen=True, kw_only=True)
class DataMapFigure(FigureSpec):
    """Where each training item lies by what the models of all seeds said of it in their epochs, by
    stratum; from the callback DataCartography.
    """

    example: ClassVar[str] = """\
name: maps
kind: data_map
panels: data.delivery
where: {data.votes_per_item: 5}
last: 5
"""
    tables: ClassVar[tuple[str, ...]] = ("maps",)
    needs_callback: ClassVar[str] = "DataCartography"

    panels: str = option(Factor(), "one map for each of its levels")
    last: int | None = option(
        Number(1, whole=True), "epochs, from the end; all by default", default=None
    )

    def compute(self, records: list[Record], around: Around) -> Maps:
        """The map of every level."""
        return Maps(records, *data_maps(self, records, around.data))

    def draw(self, found: Maps, around: Around) -> DrawnFigure:
        """One column per level, one row per stratum."""
        if not found.maps:
            return None, found.absent
        messages = [*maps_caption(self, found.maps), *found.absent]
        return draw_data_maps(found.maps, around.section), messages

    def listings(self, found: Maps, caption: list[str], around: Around) -> list[Listing]:
        """Coordinates and correlations."""
        if not found.maps:
            return []
        return [maps_listing(self, found.maps, found.records, around.section)]


def draw_data_maps(maps: dict[Any, RunsMap], section: Section) -> Figure:
    """All maps on the same axes."""
    figure = Figure(figsize=(FULL_WIDTH, 5.9), layout="constrained")
    ratios = [ratio for _ in maps for ratio in (5, 1)]
    grid = figure.add_gridspec(4, 2 * len(maps), width_ratios=ratios, height_ratios=(1, 5, 1, 5))
    name, shown = next(
        (name, values) for result in maps.values() for name, values in result.uncertainties.items()
    )
    scale = Normalize(float(shown.min()), max(float(shown.max()), float(shown.min()) + 1e-9))
    limit = max(max(float(result.found.variability.max()) for result in maps.values()) * 1.04, 1e-3)
    for column, (level, result) in enumerate(maps.items()):
        for row, (color, stratum) in enumerate(zip(STRATA.values(), ("nohlv", "hlv"), strict=True)):
            middle = figure.add_subplot(grid[2 * row + 1, 2 * column])
            above = figure.add_subplot(grid[2 * row, 2 * column], sharex=middle)
            beside = figure.add_subplot(grid[2 * row + 1, 2 * column + 1], sharey=middle)
            mask = result.mask(stratum)
            draw_stratum(
                (middle, above, beside),
                result.found,
                mask,
                result.uncertainties[name],
                scale,
                limit,
                color,
            )
            heading = "" if level is ABSENT or row else f"{as_typed(section.label(level))}\n"
            means = (
                f"conf. {result.found.confidence[mask].mean():.2f}, var. "
                f"{result.found.variability[mask].mean():.3f}"
                if mask.any()
                else ""
            )
            above.set_title(f"{heading}{means}", fontsize=8)
            middle.tick_params(labelleft=not column, labelbottom=bool(row))
            middle.locator_params(axis="x", nbins=3)
            if not column:
                middle.set_ylabel(f"{list(STRATA)[row]}\nconfidence")
            if row:
                middle.set_xlabel("variability")
    figure.colorbar(
        ScalarMappable(scale, COLORS),
        ax=figure.axes,
        location="bottom",
        shrink=0.6,
        aspect=50,
        label=f"people's {as_typed(name)}",
    )
    return figure
