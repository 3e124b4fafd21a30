"""How much annotators disagree, dataset by dataset: a histogram of the entropy of items' vote
distributions.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from callbacks.figures.figure_text import as_typed
from callbacks.uncertainty_figures import GREY
from core.errors import InputError
from studies.analysis.collect import Record
from studies.analysis.data_of_runs import DataOfRuns
from studies.figures.figure_spec import Around, DrawnFigure, FigureSpec
from studies.figures.figure_style import COLORS, panels
from studies.report.listing_specs import one_dataset_each
from studies.report.section import Section
from studies.schema.grid_options import Factor
from studies.schema.options import Number, option


@dataclass(frozen=True, kw_only=True)
class EntropyHistogram(FigureSpec):
    """How much annotators disagree: the entropy of items' votes, one panel per dataset; from the
    data.
    """

    example: ClassVar[str] = """\
name: disagreement
kind: entropy_histogram
panels: dataset
bins: 20
"""

    panels: str = option(Factor(), "each of its levels is one dataset")
    bins: int = option(Number(1, whole=True), "of equal width", default=20)

    def check(self, key: str, reading: object) -> None:
        """Of votes, which do not depend on how they are delivered."""
        one_dataset_each(self, self.panels, f"{key}.panels", reading)

    def draw(self, found: list[Record], around: Around) -> DrawnFigure:
        """One panel per dataset."""
        return draw_entropy_histogram(self, found, around.section, around.data)


def draw_entropy_histogram(
    spec: EntropyHistogram, records: list[Record], section: Section, data: DataOfRuns
) -> tuple[Figure | None, list[str]]:
    """One panel per dataset, of all its items: the share of items in each bin of entropy over the
    entropy of an even spread.
    """
    entropies, absent = {}, []
    for level in spec.levels[spec.panels]:
        of_level = [record for record in records if record.factors[spec.panels] == level]
        if not of_level:
            absent.append(f"Nothing to draw yet for {section.label(level)}.")
            continue
        try:
            corpus = data.of(of_level[0].config).corpus
        except InputError as error:
            absent.append(f"Not drawn for {section.label(level)}: {error}")
            continue
        assert corpus is not None
        entropies[level] = corpus.votes.normalized_entropy.clip(max=1)  # above it only by rounding
    if not entropies:
        return None, absent
    figure, places = panels(len(entropies), 2.6)
    tallest = 0.0
    for place, (axes, (level, entropy)) in enumerate(zip(places, entropies.items(), strict=True)):
        share, edges = np.histogram(
            entropy, bins=spec.bins, range=(0, 1), weights=np.full(len(entropy), 1 / len(entropy))
        )
        axes.stairs(share, edges, fill=True, color=COLORS[place % len(COLORS)], alpha=0.75)
        axes.axvline(float(entropy.mean()), color=GREY, linewidth=1, linestyle="--")
        axes.set_title(
            f"{as_typed(section.label(level))}\n{len(entropy):,} items, mean {entropy.mean():.2f}"
        )
        axes.set(
            xlabel="normalised entropy",
            ylabel="share of items" if place % 3 == 0 else "",
            xlim=(0, 1),
        )
        tallest = max(tallest, float(share.max()))
    for axes in places:
        axes.set_ylim(0, 1.05 * tallest)
    message = (
        "Entropy of each item's votes, divided by that of an even spread over all classes; "
        "all items of a dataset. Dashed: the mean."
    )
    return figure, [message, *absent]
