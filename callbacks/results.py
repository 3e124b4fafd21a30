"""What a test measured, as `results.json` in the run's directory and as a table on the terminal."""

import dataclasses
import json
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from lightning import Callback, LightningModule, Trainer
from rich.console import Console
from rich.table import Table

from kept_files import write_atomically

PACKAGES = ("torch", "lightning", "torchvision", "torchmetrics", "numpy", "scipy", "relplot")


class Results(Callback):
    """Writes every metric of a test, with seed, delivery, dataset and versions, so that a run explains itself."""

    def on_test_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        metrics = {name.removeprefix("test/"): float(value) for name, value in trainer.callback_metrics.items()}
        val_loss: Any = pl_module.val_loss
        if val_loss is not None:
            metrics["val_loss"] = val_loss
        data: Any = getattr(trainer, "datamodule", None)
        folder = Path(trainer.default_root_dir)
        targets = getattr(data, "targets", None)
        about = describe_run(data, data.delivery, data.votes_per_item, pl_module.network, folder, trainer.ckpt_path, targets)
        notes = [note for callback in trainer.callbacks for note in getattr(callback, "notes", [])]  # pyright: ignore[reportAttributeAccessIssue]
        results = {**about, "metrics": dict(sorted(metrics.items())), "notes": notes}
        write_results(folder, results)
        print_table(results, folder / "results.json")


def describe_run(
    data: Any, delivery: Any, votes_per_item: int | None, network: Any, folder: Path, checkpoint: Any, targets: str | None = None
) -> dict[str, Any]:
    """All of a run that its numbers depend on and that fits in a few lines."""
    return {
        "run": folder.name,
        "dataset": type(data).__name__,
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
    """Read once: looking through the installed packages would cost a pack a fifth of what it spends on each result."""
    return {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}}


def write_results(folder: Path, results: dict[str, Any]) -> None:
    """The last file of a run to be written: where it is whole, the run is done."""
    write_atomically(folder / "results.json", json.dumps(results, indent=2) + "\n")


def read_results(folder: Path) -> dict[str, Any] | None:
    """A finished run's results; None where there are none, or where the file was cut short and cannot be trusted."""
    results = read_json(folder / "results.json")
    metrics = results.get("metrics") if isinstance(results, dict) else None
    return results if isinstance(metrics, dict) and all(type(value) in (int, float) for value in metrics.values()) else None


def write_failure(folder: Path, reason: str) -> None:
    """Note that a run ended without a result and would do so again: it diverged."""
    write_atomically(folder / "failed.json", json.dumps({"reason": reason}) + "\n")


def read_failure(folder: Path) -> str | None:
    """Why a run has no result and is not to be tried again; None where nothing like that is known."""
    failure = read_json(folder / "failed.json")
    reason = failure.get("reason") if isinstance(failure, dict) else None
    return reason if isinstance(reason, str) else None


def read_json(path: Path) -> Any:
    """What a JSON file says; None where it is absent, cut short, or no JSON."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None


def has_ended(folder: Path) -> bool:
    """Whether nothing is left to do for a run."""
    return read_results(folder) is not None or read_failure(folder) is not None


def describe_value(value: Any) -> Any:
    """A delivery (or any dataclass) as plain data that says its class.

    >>> from datamodules.delivery import Mixup
    >>> describe_value(Mixup(alpha=0.2))
    {'name': 'Mixup', 'base': {'name': 'MajorityVote'}, 'alpha': 0.2}
    """
    if not dataclasses.is_dataclass(value):
        return value
    fields = {field.name: describe_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return {"name": type(value).__name__, **fields}


def print_table(results: dict[str, Any], path: Path) -> None:
    crowd = ", SIMULATED annotators" if results["simulated_annotators"] else ""
    table = Table(title=f"{results['dataset']}{crowd}: {results['delivery']['name']}, seed {results['seed']}", title_justify="left")
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name, value in results["metrics"].items():
        table.add_row(name, f"{value:.4f}")
    console = Console()
    console.print(table)
    for note in results["notes"]:
        console.print(f"note: {note}", soft_wrap=True, highlight=False, markup=False)
    network = f"{results['network']} on {results['embedder']}" if results["embedder"] else results["network"]
    console.print(f"{results['test_items']} test items, {network}. Written to {path}", soft_wrap=True, highlight=False)
