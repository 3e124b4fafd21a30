"""Pictures of how a model's uncertainty matches people's: a smooth reliability diagram and entropy against entropy."""

from pathlib import Path
from typing import Any

import numpy as np
import relplot
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from metrics import AllItems, functional

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"  # from the colour-blind safe palette of Okabe and Ito


class UncertaintyFigures(Callback):
    """Draws both figures of the test items, and of the validation items when training ends; to TensorBoard and the run's directory."""

    def __init__(self):
        self._items = AllItems()

    def on_test_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._items = AllItems().to(pl_module.device)

    on_validation_epoch_start = on_test_epoch_start

    def on_test_batch_end(self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch, batch_idx, dataloader_idx=0) -> None:
        self._items.update(outputs.probs, outputs.target_probs)

    on_validation_batch_end = on_test_batch_end

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._draw("test", trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._items.update_called:
            self._draw("val", trainer)

    def _draw(self, split: str, trainer: Trainer) -> None:
        probs, target_probs = (values.cpu() for values in self._items.compute())
        if not trainer.is_global_zero or not probs.isfinite().all():  # training diverged: there is no forecast to draw
            return
        data = getattr(trainer, "datamodule", None)
        crowd = " (simulated annotators)" if getattr(data, "simulated", False) else ""
        for name, draw in (("reliability", draw_reliability), ("entropy", draw_entropies)):
            figure = Figure(figsize=(4.2, 4.0), dpi=150)
            axes = figure.subplots(gridspec_kw={"left": 0.14, "right": 0.97, "top": 0.93, "bottom": 0.13})
            draw(axes, probs, target_probs)
            axes.set_title(f"{type(data).__name__}{crowd}: {type(getattr(data, 'delivery', None)).__name__}, {split}", fontsize=9)
            path = Path(trainer.default_root_dir) / "figures" / f"{split}_{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path)
            for logger in trainer.loggers:
                if isinstance(logger, TensorBoardLogger):
                    logger.experiment.add_figure(f"{split}/{name}", figure, trainer.current_epoch, close=False)


def draw_reliability(axes: Axes, probs: Tensor, target_probs: Tensor, color: str = BLUE, label: str | None = None) -> None:
    """The smooth reliability curve of the top class (relplot); thick where many items lie, faint where few do."""
    confidence, outcome = (values.numpy() for values in functional.confidence_and_outcome(probs, target_probs))
    curve = relplot.prepare_rel_diagram(confidence, outcome, plot_confidence_band=False, report_CE_std=False)
    inside = (curve["mesh"] >= confidence.min()) & (curve["mesh"] <= confidence.max())
    mesh, mean, density = curve["mesh"][inside], curve["mu"][inside], curve["density"][inside]
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", zorder=0)
    axes.plot(mesh, mean, color=color, linewidth=1.5, label=f"{label or 'model'}, smooth ECE {curve['ce']:.3f}")
    width = 0.06 * density / density.max()
    axes.fill_between(mesh, mean - width / 2, mean + width / 2, color=color, alpha=0.25, linewidth=0)
    axes.set(
        xlabel="confidence (top predicted probability)", ylabel="share of items where the majority agrees", xlim=(0, 1), ylim=(0, 1.02)
    )
    axes.legend(loc="upper left", frameon=False, fontsize=8)


def draw_entropies(axes: Axes, probs: Tensor, target_probs: Tensor) -> None:
    """The model's entropy against the annotators', item by item, with the mean by bin of the annotators' entropy."""
    model, people = functional.entropy(probs).numpy(), functional.entropy(target_probs).numpy()
    rho = functional.correlation(functional.entropy(probs), functional.entropy(target_probs), "spearman").item()
    limit = np.log(probs.shape[1])
    axes.plot([0, limit], [0, limit], color=GREY, linewidth=1, linestyle="--", zorder=0)
    axes.scatter(people, model, s=5, alpha=0.25, color=BLUE, linewidths=0, rasterized=True)
    bins = np.linspace(0, people.max() + 1e-9, 9)
    bin_of = np.digitize(people, bins) - 1
    means = [(people[bin_of == b].mean(), model[bin_of == b].mean()) for b in range(8) if (bin_of == b).sum() >= 5]
    if means:
        axes.plot(*zip(*means, strict=True), color=ORANGE, marker="o", markersize=4, linewidth=1.5, label=f"mean; Spearman {rho:.2f}")
        axes.legend(loc="upper left", frameon=False, fontsize=8)
    axes.set(xlabel="annotators' entropy (nats)", ylabel="model's entropy (nats)", xlim=(-0.05, limit), ylim=(-0.05, limit * 1.02))


def draw_entropy_curve(axes: Axes, probs: Tensor, target_probs: Tensor, color: str, label: str) -> None:
    """The model's mean entropy over nine bins that hold equally many disagreeing items, after one for the unanimous ones."""
    model, people = functional.entropy(probs).numpy(), functional.entropy(target_probs).numpy()
    order = np.argsort(people, kind="stable")
    unanimous = int((people < 1e-9).sum())
    bins = [order[:unanimous], *np.array_split(order[unanimous:], 9)]
    points = [(people[rows].mean(), model[rows].mean()) for rows in bins if len(rows)]
    axes.plot(*zip(*points, strict=True), color=color, marker="o", markersize=3.5, linewidth=1.5, label=label)
