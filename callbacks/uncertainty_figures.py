"""Pictures of how a model's uncertainty matches people's: a smooth reliability diagram and entropy
against entropy.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from lightning import LightningModule, Trainer
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from callbacks.figures.drawing import Draws
from callbacks.figures.figure_text import TITLE, as_typed
from core.errors import InputError
from metrics import AllItems, functional

# from the colour-blind safe palette of Okabe and Ito
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"


class UncertaintyFigures(Draws):
    """Draws both figures of the test items, and of the validation items when training ends; to
    TensorBoard and the run's directory.
    """

    changes_training = False

    def __init__(self):
        self._items = AllItems()

    def on_test_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin with no items."""
        self._items = AllItems().to(pl_module.device)

    on_validation_epoch_start = on_test_epoch_start

    def on_test_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch,
        batch_idx,
        dataloader_idx=0,
    ) -> None:
        """Keep what was predicted."""
        self._items.update(outputs.probs, outputs.target_probs)

    on_validation_batch_end = on_test_batch_end

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Have the test items drawn."""
        self._prepare("test", trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Have the items of the last validation drawn, where there was one."""
        if self._items.update_called:
            self._prepare("val", trainer)

    def tag(self, name: str) -> str:
        """The split first, as TensorBoard groups by it."""
        return name.replace("_", "/", 1)

    def _prepare(self, split: str, trainer: Trainer) -> None:
        """Note what is to be drawn of the items of all ranks."""
        probs, target_probs = (values.cpu() for values in self._items.compute())
        data: Any = getattr(trainer, "datamodule", None)
        crowd = " (simulated annotators)" if getattr(data, "simulated", False) else ""
        title = f"{data.name}{crowd}: {type(getattr(data, 'delivery', None)).__name__}, {split}"
        kinds = {"reliability": draw_reliability, "entropy": draw_entropies}
        self.pictures = {
            f"{split}_{name}": partial(_picture, draw, probs, target_probs, title)
            for name, draw in kinds.items()
        }


def _picture(
    draw: Callable[[Axes, Tensor, Tensor], None], probs: Tensor, target_probs: Tensor, title: str
) -> Figure:
    if not probs.isfinite().all():
        raise InputError(
            "the model's predictions are not all finite numbers, because training diverged."
        )
    figure = Figure(figsize=(4.2, 4.0), dpi=150)
    axes = figure.subplots(gridspec_kw={"left": 0.14, "right": 0.97, "top": 0.93, "bottom": 0.13})
    draw(axes, probs, target_probs)
    axes.set_title(as_typed(title, TITLE), fontsize=9)
    return figure


def draw_reliability(
    axes: Axes, probs: Tensor, target_probs: Tensor, color: str = BLUE, label: str | None = None
) -> None:
    """The smooth reliability curve of the top class (relplot), thick where many items lie and thin
    where few do; a point where all confidences are alike.
    """
    from relplot import prepare_rel_diagram  # takes a second, which not every command needs

    confidence, outcome = (
        values.numpy() for values in functional.confidence_and_outcome(probs, target_probs)
    )
    curve = prepare_rel_diagram(
        confidence, outcome, plot_confidence_band=False, report_CE_std=False
    )
    inside = (curve["mesh"] >= confidence.min()) & (curve["mesh"] <= confidence.max())
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", zorder=0)
    message = f"{as_typed(label or 'model', width=30)}, smooth ECE {curve['ce']:.3f}"
    if inside.sum() > 1:
        mesh, mean, density = curve["mesh"][inside], curve["mu"][inside], curve["density"][inside]
        axes.plot(mesh, mean, color=color, linewidth=1.5, label=message)
        width = 0.06 * density / density.max()
        axes.fill_between(
            mesh, mean - width / 2, mean + width / 2, color=color, alpha=0.25, linewidth=0
        )
    else:  # no two points of the mesh lie between the least and the greatest confidence
        point = confidence.mean(), outcome.mean()
        axes.plot(*point, "o", color=color, markersize=6, clip_on=False, label=message)
    axes.set(
        xlabel="confidence (top predicted probability)",
        ylabel="share of items where the majority agrees",
        xlim=(0, 1),
        ylim=(0, 1.02),
    )
    axes.legend(loc="upper left", frameon=False, fontsize=8)


def draw_entropies(axes: Axes, probs: Tensor, target_probs: Tensor) -> None:
    """The model's entropy against the annotators', item by item, with the mean by bin of the
    annotators' entropy.
    """
    entropies = functional.entropy(probs), functional.entropy(target_probs)
    model, annotator_entropy = (values.numpy() for values in entropies)
    rho = functional.correlation(*entropies, "spearman").item()
    limit = np.log(probs.shape[1])
    axes.plot([0, limit], [0, limit], color=GREY, linewidth=1, linestyle="--", zorder=0)
    axes.scatter(
        annotator_entropy, model, s=5, alpha=0.25, color=BLUE, linewidths=0, rasterized=True
    )
    bins = np.linspace(0, annotator_entropy.max() + 1e-9, 9)
    bin_of = np.digitize(annotator_entropy, bins) - 1
    means = [
        (annotator_entropy[bin_of == b].mean(), model[bin_of == b].mean())
        for b in range(8)
        if (bin_of == b).sum() >= 5
    ]
    if means:
        message = "mean; Spearman not defined" if np.isnan(rho) else f"mean; Spearman {rho:.2f}"
        x, y = zip(*means, strict=True)
        axes.plot(x, y, color=ORANGE, marker="o", markersize=4, linewidth=1.5, label=message)
        axes.legend(loc="upper left", frameon=False, fontsize=8)
    axes.set(
        xlabel="annotators' entropy (nats)",
        ylabel="model's entropy (nats)",
        xlim=(-0.05, limit),
        ylim=(-0.05, limit * 1.02),
    )


def draw_entropy_curve(
    axes: Axes, probs: Tensor, target_probs: Tensor, color: str, label: str
) -> None:
    """The model's mean entropy over nine bins that hold equally many disagreeing items, after one
    for the unanimous ones.
    """
    model = functional.entropy(probs).numpy()
    annotator_entropy = functional.entropy(target_probs).numpy()
    order = np.argsort(annotator_entropy, kind="stable")
    unanimous = int((annotator_entropy < 1e-9).sum())
    bins = [order[:unanimous], *np.array_split(order[unanimous:], 9)]
    points = [(annotator_entropy[rows].mean(), model[rows].mean()) for rows in bins if len(rows)]
    (x, y), name = zip(*points, strict=True), as_typed(label, width=30)
    axes.plot(x, y, color=color, marker="o", markersize=3.5, linewidth=1.5, label=name)


def mark_equal_entropies(axes: Axes) -> None:
    """The line on which a model is as uncertain as annotators, and what the axes are."""
    axes.axline((0, 0), slope=1, color=GREY, linewidth=1, linestyle="--", zorder=0)
    axes.set(
        xlabel="annotators' entropy (nats)",
        ylabel="model's mean entropy (nats)",
        xlim=(0, None),
        ylim=(0, None),
    )
