"""The data map as a picture: confidence against variability, one panel per stratum, coloured by
human uncertainty, with densities at its margins.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from callbacks.figures.figure_text import TITLE, as_typed
from callbacks.uncertainty_figures import BLUE, GREY, ORANGE
from metrics.cartography import DataMap, uncertainty_correlations

COLORS = "cividis"  # reads the same with and without colour vision, and in grey
BINS = 40
STRATA = {"unanimous (NoHLV)": BLUE, "not unanimous (HLV)": ORANGE}


def draw_data_map(
    result: DataMap,
    uncertainty: np.ndarray,
    unanimous: np.ndarray,
    title: str,
    uncertainty_name: str,
) -> Figure:
    """Both strata side by side on the same axes, so that they can be compared; a stratum without
    items says so.
    """
    # every run of a study draws one, so its parts have fixed places: finding them takes longer than
    # drawing
    figure = Figure(figsize=(7.2, 4.6), dpi=150)
    places = {
        "left": 0.11,
        "right": 0.98,
        "top": 0.78,
        "bottom": 0.27,
        "wspace": 0.06,
        "hspace": 0.06,
    }
    grid = figure.add_gridspec(2, 4, width_ratios=(4, 1, 4, 1), height_ratios=(1, 4), **places)
    scale = Normalize(
        float(uncertainty.min()), max(float(uncertainty.max()), float(uncertainty.min()) + 1e-9)
    )
    limit = max(float(result.variability.max()) * 1.04, 1e-3)
    main: list[Axes] = []
    for place, ((label, color), mask) in enumerate(
        zip(STRATA.items(), (unanimous, ~unanimous), strict=True)
    ):
        middle = figure.add_subplot(grid[1, 2 * place])
        above = figure.add_subplot(grid[0, 2 * place], sharex=middle)
        beside = figure.add_subplot(grid[1, 2 * place + 1], sharey=middle)
        main.append(middle)
        draw_stratum((middle, above, beside), result, mask, uncertainty, scale, limit, color)
        middle.set_xlabel("variability (SD over epochs)")
        heading = f"{label}: {mask.sum():,} of {len(mask):,} items"
        if mask.any():
            heading += (
                f"\nmean confidence {result.confidence[mask].mean():.2f}, mean variability "
                f"{result.variability[mask].mean():.3f}"
            )
        above.set_title(heading, fontsize=8)
    main[0].set_ylabel("confidence (mean probability\nof the target class)")
    main[1].tick_params(labelleft=False)
    figure.colorbar(
        ScalarMappable(scale, COLORS),
        cax=figure.add_axes((0.25, 0.12, 0.5, 0.025)),
        orientation="horizontal",
        label=f"human uncertainty: {as_typed(uncertainty_name)}",
    )
    rho = {
        name: uncertainty_correlations(result, uncertainty)[f"{name}_spearman"]
        for name in ("confidence", "variability")
    }
    message = ", ".join(
        f"{name} {'not defined' if np.isnan(value) else f'{value:.2f}'}"
        for name, value in rho.items()
    )
    figure.suptitle(
        f"{as_typed(title, TITLE)}\nSpearman with human uncertainty: {message}", fontsize=9
    )
    return figure


def draw_stratum(
    axes: tuple[Axes, Axes, Axes],
    result: DataMap,
    mask: np.ndarray,
    uncertainty: np.ndarray,
    scale: Normalize,
    limit: float,
    color: str,
) -> None:
    """The items under a mask as dots, and how they are spread above and beside; `limit` is the end
    of the axis of variability.
    """
    middle, above, beside = axes
    variability, confidence = result.variability[mask], result.confidence[mask]
    middle.scatter(
        variability,
        confidence,
        c=uncertainty[mask],
        cmap=COLORS,
        norm=scale,
        **_dots(len(variability)),
    )
    middle.set(xlim=(-0.02 * limit, limit), ylim=(-0.02, 1.02))
    middle.locator_params(axis="x", nbins=5)
    if mask.any():
        draw_margin(above, variability, (0, limit), color, "vertical")
        draw_margin(beside, confidence, (0, 1), color, "horizontal")
    else:
        middle.text(0.5, 0.5, "no items", color=GREY, ha="center", transform=middle.transAxes)
    for margin in (above, beside):
        margin.set_axis_off()


def draw_margin(
    axes: Axes, values: np.ndarray, ends: tuple[float, float], color: str, orientation: Any
) -> None:
    """How items are spread along one axis of a map: the share in each of equal bins."""
    shares, edges = np.histogram(values.clip(*ends), bins=BINS, range=ends)
    axes.stairs(
        shares / len(values), edges, fill=True, color=color, alpha=0.6, orientation=orientation
    )


def _dots(items: int) -> dict[str, Any]:
    """Small and faint where they are many."""
    return {
        "s": 5 if items > 2000 else 9,
        "alpha": 0.5 if items > 2000 else 0.7,
        "linewidths": 0,
        "rasterized": True,
    }
