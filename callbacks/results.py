"""What a test measured, as `results.json` in the run's directory and as a table on the terminal.

Only a test of all items, of a finished training, by that run's own best checkpoint becomes
`results.json`. Any other look at a model is a preview: it goes to a folder of its own, as
`preview.json`, and nothing ever takes it for a result.
"""

import dataclasses
import json
import math
import platform
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning import Callback, LightningModule, Trainer
from rich.table import Table

from callbacks.figures.drawing import Draws
from callbacks.records.earlier_runs import training_by_evidence
from callbacks.records.results_kinds import are_results
from callbacks.records.training_record import FILE, TrainingRecord, as_training
from core.atomic_io import write_atomically
from core.ranks import sum_over_ranks
from core.read_json import read_json, with_nan, without_nan
from core.terminal import plain_console
from metrics import registered

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
        self._scored = 0

    def on_test_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, *batch: Any
    ) -> None:
        self._scored += len(outputs.index)

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._scored = int(sum_over_ranks(torch.tensor(self._scored, device=pl_module.device)))

    def on_test_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
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
        if self.preview or self._scored < about["test_items"]:
            results["preview"] = (
                self.preview or f"{self._scored} of {about['test_items']} items were scored"
            )
            path = out / "preview.json"
        else:
            results = with_earlier(results, read_results(folder))
        drawing = [callback for callback in trainer.callbacks if isinstance(callback, Draws)]  # pyright: ignore[reportAttributeAccessIssue]
        print_table(
            write_before_drawing(
                path,
                results,
                lambda: [note for callback in drawing for note in callback.draw(trainer, out)],
            ),
            path,
        )


def with_earlier(results: dict[str, Any], earlier: dict[str, Any] | None) -> dict[str, Any]:
    """Results with what an earlier test of the same run measured by other probes: a test without
    them takes nothing away.

    >>> probe, other = {"class_path": "callbacks.OODScores"}, {"class_path": "callbacks.GradCAM"}
    >>> earlier = {"metrics": {"kl": 0.3, "ood": 0.9}, "probes": [probe], "notes": ["a"]}
    >>> with_earlier({"metrics": {"kl": 0.3, "cam": 0.1}, "probes": [other], "notes": []}, earlier)
    {'metrics': {'cam': 0.1, 'kl': 0.3, 'ood': 0.9}, 'probes': [{'class_path':
    'callbacks.OODScores'}, {'class_path': 'callbacks.GradCAM'}], 'notes': ['a']}
    """
    if earlier is None:
        return results
    measured = {probe["class_path"] for probe in results["probes"]}
    kept = [probe for probe in earlier.get("probes", []) if probe["class_path"] not in measured]
    if not kept:
        return results
    return {
        **results,
        "metrics": dict(sorted({**earlier["metrics"], **results["metrics"]}.items())),
        "probes": kept + results["probes"],
        "notes": list(dict.fromkeys([*earlier["notes"], *results["notes"]])),
    }


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


def results_of_test(
    about: dict[str, Any],
    training: TrainingRecord | None,
    scored: int,
    probes: list[dict[str, Any]],
    metrics: dict[str, float],
    notes: list[str],
) -> dict[str, Any]:
    """All that `results.json` says, in its order. A metric that is not defined has a note."""
    ended = asdict(training) if training else None
    metrics = dict(sorted(metrics.items()))
    rest = {"probes": probes, "metrics": metrics, "notes": [*notes, *undefined_in_words(metrics)]}
    return {**about, "scored_items": scored, "training": ended, **rest}


def undefined_in_words(metrics: dict[str, float]) -> list[str]:
    """A sentence for each metric that is not a finite number.

    >>> undefined_in_words({"kl": 0.5, "entropy_pearson": math.nan, "own": math.inf})
    ['entropy_pearson is not defined, because one of the two entropies is the same for all items.',
    'own is not defined, because it is inf.']
    """
    reasons = {name: score.undefined for name, score in registered().items()}
    undefined = {name: value for name, value in metrics.items() if not math.isfinite(value)}
    return [
        f"{name} is not defined, because {reasons.get(name) or f'it is {value}'}."
        for name, value in undefined.items()
    ]


@cache
def _versions() -> dict[str, str]:
    """Read once: looking through the installed packages would cost a pack a fifth of what it spends
    on each result.
    """
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def write_results(folder: Path, results: dict[str, Any]) -> None:
    """The last of a run's numbers to be written: where it is whole, the run is done.

    Only pictures come after it.
    """
    _write(folder / "results.json", results)


def _write(path: Path, results: dict[str, Any]) -> None:
    write_atomically(path, json.dumps(without_nan(results), indent=2, allow_nan=False) + "\n")


def write_before_drawing(
    path: Path, results: dict[str, Any], draw: Callable[[], list[str]]
) -> dict[str, Any]:
    """Numbers first, then what `draw` draws.

    Where it returns notes, because it could not draw all of it, they are added; returns what was
    written.
    """
    _write(path, results)
    notes = draw()
    if notes:
        results = {**results, "notes": [*results["notes"], *notes]}
        _write(path, results)
    return results


def read_results(folder: Path) -> dict[str, Any] | None:
    """A finished run's results; None where there are none, where the file was cut short or altered,
    and where it does not say that the training behind it had ended and that all items were scored,
    as in earlier versions: such a run is tested again.
    """
    results = read_json(folder / "results.json")
    if not isinstance(results, dict) or not are_results(results):
        return None
    record, items = as_training(results.get("training")), results.get("test_items")
    if (
        not record
        or record.diverged
        or type(items) is not int
        or results.get("scored_items") != items
    ):
        return None
    return {**results, "metrics": with_nan(results["metrics"])}


def read_training(folder: Path) -> TrainingRecord | None:
    """How a run's training ended; None where it has not, or where nothing proves that it has."""
    path = folder / FILE
    if path.exists():
        return as_training(read_json(path))
    # only earlier versions left neither
    return None if (folder / "fingerprint.json").exists() else training_by_evidence(folder)


def read_failure(folder: Path) -> str | None:
    """Why a run has no result and is not to be tried again: it diverged.

    None where nothing like that is known.
    """
    record = read_training(folder)
    return record.reason or "its training diverged" if record and record.diverged else None


def has_ended(folder: Path) -> bool:
    """Whether a run has a result, or will never have one."""
    return read_results(folder) is not None or read_failure(folder) is not None


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
    crowd = ", SIMULATED annotators" if results["simulated_annotators"] else ""
    kind = "PREVIEW, " if "preview" in results else ""
    title = (
        f"{kind}{results['dataset']}{crowd}: {results['delivery']['name']}, seed {results['seed']}"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name, value in results["metrics"].items():
        table.add_row(name, f"{value:.4f}" if math.isfinite(value) else "not defined")
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
