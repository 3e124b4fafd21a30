"""The figure and the tables of target errors: gain over the reference delivery by distance between
sparse and full target.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from callbacks.figures.figure_text import as_typed
from callbacks.uncertainty_figures import GREY
from studies.analysis.collect import Record
from studies.analysis.target_error import TargetError, target_errors
from studies.figures.figure_spec import Around, DrawnFigure, FigureSpec
from studies.figures.figure_style import line_style, panels, shared_legend
from studies.report.listing_specs import QUANTILE
from studies.report.section import Section
from studies.schema.grid_options import Factor, Level
from studies.schema.options import ABSENT, Choice, Number, option
from studies.tables.listing import Listing
from studies.tables.measures import factor_name

DISTANCES = {
    "js": "JS distance, sparse to full target\n(square root of the divergence in nats)",
    "l1": "L1 distance, sparse to full target",
}


@dataclass(frozen=True, kw_only=True)
class TargetErrorFigure(FigureSpec):
    """Gain of each delivery over a reference by the error of its sparse targets, on training items;
    from predictions.parquet of runs with data.votes_per_item.
    """

    example: ClassVar[str] = """\
name: sparse
kind: target_error
rows: data.delivery
reference: SoftLabels
panels: data.votes_per_item
distance: js
items: high
quantile: 0.9
bins: 6
"""
    tables: ClassVar[tuple[str, ...]] = ("spearman", "bins")
    needs_predictions: ClassVar[bool] = True
    for_claims: ClassVar[bool] = True

    rows: str = option(Factor(), "the deliveries")
    reference: Any = option(Level(), "what gains are over")
    panels: str = option(
        Factor(), "one panel for each of its levels; without it, `where` must fix it", default=""
    )
    distance: str = option(Choice("js", "l1"), "between sparse and full target", default="js")
    items: str = option(Choice("all", "high"), "`high`: of high disagreement", default="all")
    # the paper states neither of them
    quantile: float = option(Number(0, 1), QUANTILE, default=0.9)
    bins: int = option(
        Number(1, whole=True), "of equal mass, after one for targets without error", default=6
    )

    def check(self, key: str, reading: Any) -> None:
        """Only a target made from few votes has an error."""
        super().check(key, reading)
        for run in reading.runs:
            all_votes = run.config["data"]["init_args"].get("votes_per_item") is None
            if all_votes and run.is_in(self.grid, self.where):
                reading.checks.wrong(
                    key,
                    f"shows {run.name}, which trains on all votes, so that its targets have no "
                    "error; see where",
                )

    def compute(self, records: list[Record], around: Around) -> TargetError:
        """The gains, item by item."""
        return target_errors(self, records, around.paired)

    def draw(self, found: TargetError, around: Around) -> DrawnFigure:
        """One panel per number of votes."""
        if found.note:
            return None, [f"Not drawn: {found.note}."]
        figure = draw_target_error(self, found, around.section)
        return figure, target_error_caption(self, found, around.section)

    def listings(self, found: TargetError, caption: list[str], around: Around) -> list[Listing]:
        """Correlations and points."""
        return [] if found.note else target_error_listings(self, found, around.section, caption)


def draw_target_error(spec: TargetErrorFigure, result: TargetError, section: Section) -> Figure:
    """One panel per number of votes, one line per delivery; a bin stands at the mean distance of
    its items.
    """
    figure, places = panels(len(spec.panel_levels), 3.3, across=2)
    for axes, panel in zip(places, spec.panel_levels, strict=True):
        axes.axhline(0, color=GREY, linewidth=1, linestyle="--", zorder=0)
        by_method = result.bins(panel, spec.bins)
        for place, method in enumerate(
            spec.levels[spec.rows]
        ):  # the reference has its colour in other figures, so it is counted here
            bins = by_method.get(method, [])
            if not bins:
                continue
            x, mean, low, high = (
                np.array([getattr(b, name) for b in bins])
                for name in ("distance", "gain", "gain_low", "gain_high")
            )
            style = line_style(place)
            axes.plot(
                x,
                mean,
                **style,
                markersize=4.5,
                linewidth=1.5,
                label=as_typed(section.label(method)),
            )
            axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
        axes.set(
            xlabel=DISTANCES[spec.distance],
            ylabel=f"gain in soft NLL over\n{as_typed(section.label(spec.reference))} (nats)",
        )
        if panel is not ABSENT:
            axes.set_title(as_typed(f"{factor_name(spec.panels)}: {section.label(panel)}"))
    shared_legend(figure, max(places, key=lambda axes: len(axes.get_lines())))
    return figure


def target_error_caption(
    spec: TargetErrorFigure, result: TargetError, section: Section
) -> list[str]:
    """What is drawn, on which items, and the correlations by delivery."""
    fewest, most = min(result.items), max(result.items)
    number = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    high = (
        f" whose annotators' entropy reaches its {spec.quantile:g} quantile"
        if spec.items == "high"
        else ""
    )
    reference = section.label(spec.reference)
    messages = [
        f"Gain: soft NLL of {reference} minus that of each delivery of the same seed and votes, "
        "against all votes of an item; above 0, the delivery is better.",
        f"On the {number} training items of each seed{high}, because only training items have a "
        "sparse target.",
        f"Points: items whose sparse target has no error (at 0), then up to {spec.bins} bins that "
        "hold equally many items, each at its mean distance; "
        "none where some seed has no such item.",
        "Lines: mean over seeds; bands: its 95 % bootstrap (BCa) interval.",
    ]
    correlations = []
    for method in [level for level in spec.levels[spec.rows] if level != spec.reference]:
        values = [
            v
            for panel in spec.panel_levels
            for v in result.spearman(method, panel).values()
            if not np.isnan(v)
        ]
        if values:
            correlations.append(
                f"{section.label(method)} {np.mean(values):.3f} ({min(values):.3f} to "
                f"{max(values):.3f})"
            )
    over = "seeds and panels" if len(spec.panel_levels) > 1 else "seeds"
    if correlations:
        messages.append(
            f"Spearman correlation of distance and gain over items, mean and range over {over}: "
            f"{', '.join(correlations)}."
        )
    if result.used < result.runs:
        messages.append(
            f"From the {result.used} of {result.runs} runs that have a predictions.parquet."
        )
    return messages


def target_error_listings(
    spec: TargetErrorFigure, result: TargetError, section: Section, notices: list[str]
) -> list[Listing]:
    """The correlations, delivery by delivery, and the points of the figure."""
    panel_name = factor_name(spec.panels) if spec.panels else ""
    correlations, points = [], []
    for (method, panel), _ in result.cells.items():
        values = np.array([v for v in result.spearman(method, panel).values() if not np.isnan(v)])
        if len(values):
            numbers = {
                "mean": float(values.mean()),
                "lowest": float(values.min()),
                "highest": float(values.max()),
                "seeds": len(values),
            }
            correlations.append(_place(spec, method, panel, section) | numbers)
    for panel in spec.panel_levels:
        for method, bins in result.bins(panel, spec.bins).items():
            points += [_place(spec, method, panel, section) | vars(b) for b in bins]
    who = {"delivery": factor_name(spec.rows)} | ({"panel": panel_name} if spec.panels else {})
    caption = [
        *notices,
        "Spearman correlation over items between gain and "
        f"{DISTANCES[spec.distance].splitlines()[0]}: mean and range over seeds.",
    ]
    of_points = {
        "low": "above",
        "high": "up to",
        "distance": "mean distance",
        "items": "items of all seeds",
        "seeds": "seeds",
    }
    of_points |= {"gain": "mean gain (nats)", "gain_low": "95 % from", "gain_high": "to"}
    title, shown = (
        spec.title,
        {"mean": "mean", "lowest": "lowest", "highest": "highest", "seeds": "seeds"},
    )
    return [
        Listing(
            f"{spec.name}-spearman", f"{title}: correlations", caption, who | shown, correlations
        ),
        Listing(
            f"{spec.name}-bins",
            f"{title}: points",
            [*notices, "The points of the figure."],
            who | of_points,
            points,
            inline=False,
        ),
    ]


def _place(spec: TargetErrorFigure, method: Any, panel: Any, section: Section) -> dict[str, Any]:
    return {"delivery": section.label(method)} | (
        {"panel": section.label(panel)} if spec.panels else {}
    )
