"""The picture of OOD scores: for each score, how the data and the OOD set are spread over it."""

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from callbacks.figures.figure_text import TITLE, as_typed
from callbacks.uncertainty_figures import BLUE, ORANGE
from metrics import detection

COLUMNS, BINS = 4, 40
LABELS = {  # of each score: its name, and what it measures
    "msp": ("MSP", "minus the largest probability"),
    "energy": ("energy", "energy (logits)"),
    "entropy": ("entropy", "entropy (nats)"),
    "margin": ("logit margin", "minus the margin (logits)"),
    "odin": ("ODIN", "minus the largest probability"),
    "knn": ("KNN", "distance to the k-th neighbour"),
    "mahalanobis": ("Mahalanobis", "squared distance"),
    "vim": ("ViM", "virtual logit + energy (logits)"),
}


def draw_scores(title: str, outside_name: str, scores: dict[str, tuple[Tensor, Tensor]]) -> Figure:
    """One panel per score, from its values on (the data, the OOD set).

    Each distribution sums to 1, whatever its number of items.
    """
    columns = min(COLUMNS, len(scores))
    rows = -(-len(scores) // columns)
    size = (max(6.0, 0.5 + 2.6 * columns), 0.9 + 2.1 * rows)
    figure = Figure(figsize=size, layout="constrained", dpi=150)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, (score, (inside, outside)) in zip(panels, scores.items(), strict=False):
        name, axis = LABELS.get(score, (score, "score"))
        known, foreign = inside.numpy(), outside.numpy()
        edges = bin_edges(known, foreign, squares=score == "mahalanobis")
        # what lies beyond the ends is counted in the outermost bins: a few far items would squeeze
        # all others into one
        shares = [
            np.histogram(values.clip(edges[0], edges[-1]), edges)[0] / len(values)
            for values in (known, foreign)
        ]
        label = f"test items ({len(known):,})"
        panel.stairs(shares[0], edges, color=BLUE, fill=True, alpha=0.45, label=label)
        label = f"{as_typed(outside_name)} ({len(foreign):,})"
        panel.stairs(shares[1], edges, color=ORANGE, linewidth=1.6, label=label)
        auroc = detection.auroc(inside, outside).item()
        panel.set_title(f"{as_typed(name)}: AUROC {auroc:.3f}", fontsize=9)
        panel.set_xlabel(axis, fontsize=8)
        panel.tick_params(labelsize=7)
        if np.allclose(np.diff(edges), edges[1] - edges[0]):
            panel.locator_params(axis="x", nbins=4)
        else:
            panel.set_xscale("log")
    for panel in panels[len(scores) :]:
        panel.set_axis_off()
    for panel in panels[: len(scores) : columns]:
        panel.set_ylabel("share of items", fontsize=8)
    figure.suptitle(f"{as_typed(title, TITLE)}, OOD scores (higher: more foreign)", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def bin_edges(known: np.ndarray, foreign: np.ndarray, squares: bool) -> np.ndarray:
    """Bins over all but the outermost half per cent of either; squares that span two powers of ten
    are spaced by their logarithm.
    """
    ends = np.quantile(known, [0.005, 0.995]), np.quantile(foreign, [0.005, 0.995])
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    if high <= low:  # (almost) all are equal
        low, high = low - 0.5, low + 0.5
    if squares and 0 < low < high / 100:
        return np.geomspace(low, high, BINS + 1)
    return np.linspace(low, high, BINS + 1)
