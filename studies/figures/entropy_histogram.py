"""How much annotators disagree, dataset by dataset: a histogram of the entropy of items' vote
distributions.
"""

import numpy as np
from matplotlib.figure import Figure

from callbacks.figures.figure_text import as_typed
from callbacks.uncertainty_figures import GREY
from core.errors import InputError
from studies.analysis.collect import Record
from studies.analysis.data_of_runs import DataOfRuns
from studies.figures.figure_style import COLORS, panels
from studies.report.section import FigureSpec, Section


def draw_entropy_histogram(
    spec: FigureSpec, records: list[Record], section: Section, data: DataOfRuns
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
