"""A training summed up from its history, and drawn: what is behind `TrainingDynamics`."""

import math

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from callbacks.figures.figure_text import TITLE, as_typed
from callbacks.history import Epochs
from callbacks.uncertainty_figures import BLUE, GREY, ORANGE

SCORE = "val/soft_nll"
STRATA = {  # columns of the history (after val/), and how the figure calls and draws them
    "js": ("all items", GREY, "--"),
    "js_nohlv": ("unanimous (NoHLV)", BLUE, "-"),
    "js_hlv": ("not unanimous (HLV)", ORANGE, "-"),
    "js_high": ("high disagreement", "#CC79A7", ":"),
}


def dynamics_summary(epochs: Epochs) -> dict[str, float]:
    """When validation soft NLL was at its best and first within 5 % of it, and how much predictions
    moved over the last quarter of epochs.

    The paper says "95 % of its best", which is read as at most 1.05 times the least value. Nothing
    is said where no epoch has a finite score.

    >>> scores = enumerate((2.0, 1.04, 1.0, 1.1))
    >>> dynamics_summary([{"epoch": epoch, "val/soft_nll": score} for epoch, score in scores])
    {'best_epoch': 2.0, 'epoch_within_5pct': 1.0, 'best_val_soft_nll': 1.0, 'final_val_soft_nll':
    1.1}
    """
    scores = {
        int(row["epoch"]): row[SCORE] for row in epochs if math.isfinite(row.get(SCORE, math.nan))
    }
    if not scores:
        return {}
    best = min(scores, key=scores.__getitem__)
    near = next(
        epoch for epoch, score in scores.items() if score <= max(1.05 * scores[best], scores[best])
    )
    summary = {"best_epoch": float(best), "epoch_within_5pct": float(near)}
    summary |= {"best_val_soft_nll": scores[best], "final_val_soft_nll": [*scores.values()][-1]}
    losses = {
        int(row["epoch"]): row["val/loss"]
        for row in epochs
        if math.isfinite(row.get("val/loss", math.nan))
    }
    if losses:  # the score that the run itself followed, which model.monitor names
        summary["best_loss_epoch"] = float(min(losses, key=losses.__getitem__))
    for name in STRATA:
        moved = [row[f"val/{name}"] for row in epochs if f"val/{name}" in row]
        if moved:
            late = moved[-math.ceil(len(moved) / 4) :]
            summary[f"late_{name}"] = sum(late) / len(late)
    return summary


def draw_dynamics(epochs: Epochs, title: str) -> Figure:
    """Soft NLL by epoch above, divergence between successive epochs by stratum below."""
    summary = dynamics_summary(epochs)
    best, near = int(summary["best_epoch"]), int(summary["epoch_within_5pct"])
    scores = dict(zip(*_column(epochs, SCORE), strict=True))
    figure = Figure(figsize=(5.2, 5.6), dpi=150)
    above, below = figure.subplots(
        2,
        1,
        sharex=True,
        gridspec_kw={"left": 0.17, "right": 0.97, "top": 0.94, "bottom": 0.18, "hspace": 0.1},
    )
    above.plot(list(scores), list(scores.values()), color=BLUE, linewidth=1.5)
    above.axhline(
        1.05 * scores[best],
        color=GREY,
        linewidth=1,
        linestyle=":",
        zorder=0,
        label="5 % above the best",
    )
    above.plot(
        near, scores[near], "o", color=ORANGE, markersize=6, label=f"first below that: epoch {near}"
    )
    above.plot(
        best,
        scores[best],
        "*",
        color=BLUE,
        markersize=11,
        label=f"best: {scores[best]:.3f} nats, epoch {best}",
    )
    above.set(ylabel="soft NLL (nats)", title=as_typed(title, TITLE))
    above.title.set_fontsize(9)
    above.legend(frameon=False, fontsize=8)
    for name, (label, color, style) in STRATA.items():
        x, moved = _column(epochs, f"val/{name}")
        if any(value > 0 for value in moved):
            below.plot(x, moved, style, color=color, linewidth=1.5, label=label)
    if below.lines:
        below.set_yscale("log")
        figure.legend(
            *below.get_legend_handles_labels(),
            loc="lower center",
            ncols=2,
            frameon=False,
            fontsize=8,
        )
    else:
        below.set_yticks([])
        below.text(0.5, 0.5, "not measured", color=GREY, ha="center", transform=below.transAxes)
    below.set(xlabel="epoch (the first is 0)", ylabel="JS divergence from\nthe epoch before (nats)")
    below.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return figure


def _column(epochs: Epochs, name: str) -> tuple[list[float], list[float]]:
    rows = [row for row in epochs if name in row]
    return [row["epoch"] for row in rows], [row[name] for row in rows]
