"""How training gets to its end: when it is at its best, and how much predictions still move from
epoch to epoch, by stratum.
"""

import math
from functools import partial
from typing import Any

import torch
from lightning import LightningModule, Trainer
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from callbacks.figures.figure_text import TITLE, as_typed
from callbacks.history import Epochs, read_history, training_pauses_to_validate
from callbacks.probe import Probe, ProbeResult
from callbacks.uncertainty_figures import BLUE, GREY, ORANGE
from core.ranks import from_first_rank, gather_over_ranks
from datamodules import VoteDataModule
from datamodules.votes.table import VoteTable
from lightning_modules import AnnotatorClassifier
from metrics.drift import prediction_drift

SCORE = "val/soft_nll"
STRATA = {  # columns of the history (after val/), and how the figure calls and draws them
    "js": ("all items", GREY, "--"),
    "js_nohlv": ("unanimous (NoHLV)", BLUE, "-"),
    "js_hlv": ("not unanimous (HLV)", ORANGE, "-"),
    "js_high": ("high disagreement", "#CC79A7", ":"),
}


class TrainingDynamics(Probe):
    """While training, compares each epoch's validation predictions with those of the epoch before
    it; after a test, sums up `history.json`.

    The divergences are logged as `val/js…`, so `History` keeps them. The predictions that the next
    epoch is compared with are kept in checkpoints.
    """

    def __init__(self, quantile: float = 0.9):
        """
        Args:
            quantile: Items whose entropy reaches it, over the whole table, are of high
                disagreement. The papers do not state their cut.
        """
        self.quantile = quantile
        self._batches: list[tuple[Tensor, Tensor]] = []
        # the last epoch's items, by `index`, and their `probs`
        self._before: dict[str, Tensor] = {}
        self._now: dict[str, Tensor] = {}

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._strata = self.strata(trainer.datamodule)  # pyright: ignore[reportAttributeAccessIssue]

    def strata(self, data: VoteDataModule) -> dict[str, Tensor]:
        """Masks of the whole table, by the column of the history that has their divergence."""
        assert data.corpus is not None
        return strata_of(data.annotator_votes, self.quantile)

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._batches = []

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch,
        batch_idx,
        dataloader_idx=0,
    ) -> None:
        if training_pauses_to_validate(trainer):
            self._batches.append((outputs.index, outputs.probs))

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not training_pauses_to_validate(trainer):
            return
        index, probs = (
            gather_over_ranks(torch.cat(parts)).cpu() for parts in zip(*self._batches, strict=True)
        )
        order = index.argsort()  # one order for any number of ranks
        self._now = {"index": index[order], "probs": probs[order]}
        if self._before and torch.equal(self._before["index"], self._now["index"]):
            strata = {
                f"val/{name}": mask[self._now["index"]] for name, mask in self._strata.items()
            }
            drift = prediction_drift(self._before["probs"], self._now["probs"], strata)
            pl_module.log_dict(
                {name: torch.tensor(value, dtype=torch.float64) for name, value in drift.items()},
                sync_dist=True,
            )

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._before = self._now

    def state_dict(self) -> dict[str, Any]:
        return {"before": self._before, "now": self._now}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._before, self._now = state_dict["before"], state_dict["now"]

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        epochs = from_first_rank(read_history(self.folder) if self.folder else None)
        where = f"{self.folder}/history.json" if self.folder else "a history"
        if epochs is None:
            return ProbeResult(
                notes=[
                    f"TrainingDynamics: there is no {where} of this training, so it is not summed "
                    "up; fit writes one."
                ]
            )
        summary = dynamics_summary(epochs)
        if not summary:
            return ProbeResult(
                notes=[
                    f"TrainingDynamics: {where} holds no finite validation score, so this "
                    "training is not summed up."
                ]
            )
        notes = []
        if len(epochs) > 1 and "late_js" not in summary:
            notes = [
                f"TrainingDynamics: {where} holds no divergences between epochs, because fit was "
                "run without TrainingDynamics."
            ]
        crowd = " (simulated annotators)" if data.simulated else ""
        picture = partial(draw_dynamics, epochs, f"{data.name}{crowd}: validation items by epoch")
        return ProbeResult(summary, {"training_dynamics": picture}, notes=notes)


def strata_of(votes: VoteTable, quantile: float) -> dict[str, Tensor]:
    """All items, those with unanimous votes, those without, and those of high disagreement.

    >>> {name: mask.tolist() for name,
    ...     mask in strata_of(VoteTable(counts=[[4, 0], [3, 1], [2, 2]]),
    ...     0.9).items() if name != "js"}
    {'js_nohlv': [True, False, False], 'js_hlv': [False, True, True], 'js_high': [False, False,
    True]}
    """
    unanimous, high = (
        torch.from_numpy(votes.unanimous),
        torch.from_numpy(votes.high_disagreement(quantile)),
    )
    return dict(zip(STRATA, (torch.ones_like(unanimous), unanimous, ~unanimous, high), strict=True))


def dynamics_summary(epochs: Epochs) -> dict[str, float]:
    """When validation soft NLL was at its best and first within 5 % of it, and how much predictions
    moved over the last quarter of epochs.

    The paper says "95 % of its best", which is read as at most 1.05 times the least value. Nothing
    is said where no epoch has a finite score.

    >>> dynamics_summary([{"epoch": epoch, "val/soft_nll": score} for epoch,
    ...     score in enumerate((2.0, 1.04, 1.0, 1.1))])
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
