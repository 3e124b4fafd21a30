"""What a test measured, as `results.json` in the run's directory and as a table on the terminal.

Only a test of all items, of a finished training, by that run's own best checkpoint becomes
`results.json`. Any other look at a model is a preview: it goes to a folder of its own, as
`preview.json`, and nothing ever takes it for a result.
"""

import dataclasses
import math
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning import Callback, LightningModule, Trainer
from rich.table import Table

from callbacks.figures.drawing import Draws
from callbacks.records.results_file import (
    has_ended,
    read_failure,
    read_results,
    read_training,
    results_of_test,
    with_earlier,
    write_before_drawing,
    write_results,
)
from callbacks.records.training_record import as_training
from callbacks.records.worth import with_worth, worth_in_words
from core.ranks import sum_over_ranks
from core.terminal import plain_console

__all__ = [
    "Results",
    "describe_run",
    "describe_value",
    "has_ended",
    "output_folder",
    "print_table",
    "read_failure",
    "read_results",
    "read_training",
    "results_of_test",
    "write_before_drawing",
    "write_results",
]
PACKAGES = ("torch", "lightning", "torchvision", "torchmetrics", "numpy", "scipy", "relplot")


class Results(Callback):
    """Writes every metric of a test, with seed, delivery, dataset and versions, so that a run
    explains itself.
    """

    changes_training = False

    def __init__(
        self,
        preview: str = "",
        folder: Path | None = None,
        probes: list[dict[str, Any]] | None = None,
    ):
        """
        Args:
            preview: Why what this test finds is no result, in words; empty where it is one.
            folder: Where a preview is written.
            probes: The options of the probes that are measured, which are kept beside the numbers.
        """
        self.preview, self.folder, self.probes = preview, folder, probes or []
        self.notes: list[str] = []
        self._scored = 0

    def on_test_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """No item is scored yet."""
        self._scored = 0

    def on_test_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Count the items of a batch."""
        self._scored += len(outputs.index)

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Count those of all ranks."""
        self._scored = int(sum_over_ranks(torch.tensor(self._scored, device=pl_module.device)))

    def on_test_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the results, or the preview, and print them."""
        if not trainer.is_global_zero:
            return
        metrics = {
            name.removeprefix("test/"): float(value)
            for name, value in trainer.callback_metrics.items()
        }
        val_loss: Any = pl_module.val_loss
        if val_loss is not None:
            metrics["val_loss"] = val_loss
        data: Any = getattr(trainer, "datamodule", None)
        folder = Path(trainer.default_root_dir)
        targets = getattr(data, "targets", None)
        about = describe_run(
            data,
            data.delivery,
            data.votes_per_item,
            pl_module.network,
            folder,
            trainer.ckpt_path,
            targets,
        )
        notes = [note for callback in trainer.callbacks for note in getattr(callback, "notes", [])]  # pyright: ignore[reportAttributeAccessIssue]
        results = results_of_test(
            about, read_training(folder), self._scored, self.probes, metrics, notes
        )
        out = output_folder(trainer)
        path = out / "results.json"
        whole = self._scored >= about["test_items"]
        if self.preview or not whole:
            results["preview"] = (
                self.preview or f"{self._scored} of {about['test_items']} items were scored"
            )
            path = out / "preview.json"
        else:
            results = with_earlier(results, read_results(folder))
        if whole:
            results = with_worth(results, data)
        drawing = [callback for callback in trainer.callbacks if isinstance(callback, Draws)]  # pyright: ignore[reportAttributeAccessIssue]
        print_table(
            write_before_drawing(
                path,
                results,
                lambda: [note for callback in drawing for note in callback.draw(trainer, out)],
            ),
            path,
        )


def output_folder(trainer: Trainer) -> Path:
    """Where what a test or prediction leaves is written: the run's folder, or that of a preview."""
    previews = [callback.folder for callback in trainer.callbacks if isinstance(callback, Results)]  # pyright: ignore[reportAttributeAccessIssue]
    return next(
        (folder for folder in previews if folder is not None), Path(trainer.default_root_dir)
    )


def describe_run(
    data: Any,
    delivery: Any,
    votes_per_item: int | None,
    network: Any,
    folder: Path,
    checkpoint: Any,
    targets: str | None = None,
) -> dict[str, Any]:
    """All of a run that its numbers depend on and that fits in a few lines."""
    return {
        "run": folder.name,
        "dataset": data.name,
        "simulated_annotators": data.simulated,
        "embedder": getattr(data, "embedder_name", None),  # of frozen inputs
        "delivery": describe_value(delivery),
        "votes_per_item": votes_per_item,
        # of data with several kinds of labels: those trained on and those judged by
        "targets": targets,
        "evaluate_against": getattr(data, "evaluate_against", None),
        "seed": data.seed,
        "network": type(network).__name__,
        "parameters": sum(p.numel() for p in network.parameters()),
        "checkpoint": str(checkpoint) if checkpoint else None,
        "test_items": len(data.corpus.splits["test"]),
        "val_is_test": np.array_equal(data.corpus.splits["val"], data.corpus.splits["test"]),
        "versions": _versions(),
    }


@cache
def _versions() -> dict[str, str]:
    """Read once: looking through the installed packages would cost a pack a fifth of what it spends
    on each result.
    """
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def describe_value(value: Any) -> Any:
    """A delivery (or any dataclass) as plain data that says its class.

    >>> from datamodules.votes.delivery import Mixup
    >>> describe_value(Mixup(alpha=0.2))
    {'name': 'Mixup', 'base': {'name': 'MajorityVote'}, 'alpha': 0.2}
    """
    if not dataclasses.is_dataclass(value):
        return value
    fields = {
        field.name: describe_value(getattr(value, field.name))
        for field in dataclasses.fields(value)
    }
    return {"name": type(value).__name__, **fields}


def print_table(results: dict[str, Any], path: Path) -> None:
    """What a test found, for whoever started it."""
    crowd = ", SIMULATED annotators" if results["simulated_annotators"] else ""
    kind = "PREVIEW, " if "preview" in results else ""
    title = (
        f"{kind}{results['dataset']}{crowd}: {results['delivery']['name']}, seed {results['seed']}"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("metric")
    for column in ("value", *(("floor", "ceiling", "skill") if results.get("worth") else ())):
        table.add_column(column, justify="right")
    for name, value in results["metrics"].items():
        worth = worth_in_words(results["worth"], name, value) if results.get("worth") else ()
        said = f"{value:.4f}" if math.isfinite(value) else "not defined"
        table.add_row(name, said, *worth)
    console = plain_console()
    console.print(table)
    for note in results["notes"]:
        console.print(f"note: {note}", soft_wrap=True, highlight=False, markup=False)
    network = (
        f"{results['network']} on {results['embedder']}"
        if results["embedder"]
        else results["network"]
    )
    record = as_training(results["training"])
    lines = [
        f"{results['scored_items']} of {results['test_items']} test items, {network}, "
        f"{record.in_words() if record else 'not trained to its end'}."
    ]
    lines += (
        [f"This is a preview and no result: {results['preview']}."] if "preview" in results else []
    )
    console.print(*lines, f"Written to {path}", soft_wrap=True, highlight=False, markup=False)
