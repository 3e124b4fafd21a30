"""What a test measured, as `results.json` in the run's directory and as a table on the terminal."""

import dataclasses
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lightning import Callback, LightningModule, Trainer
from rich.console import Console
from rich.table import Table

PACKAGES = ("torch", "lightning", "torchvision", "torchmetrics", "numpy", "scipy", "relplot")


class Results(Callback):
    """Writes every metric of a test, with seed, delivery, dataset and versions, so that a run explains itself."""

    def on_test_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        metrics = {name.removeprefix("test/"): float(value) for name, value in sorted(trainer.callback_metrics.items())}
        results = {**describe_run(trainer, pl_module), "metrics": metrics}
        path = Path(trainer.default_root_dir) / "results.json"
        write_atomically(path, json.dumps(results, indent=2) + "\n")
        print_table(results, path)


def describe_run(trainer: Trainer, pl_module: LightningModule) -> dict[str, Any]:
    """All of a run that its numbers depend on and that fits in a few lines."""
    data: Any = getattr(trainer, "datamodule", None)
    return {
        "run": Path(trainer.default_root_dir).name,
        "dataset": type(data).__name__,
        "simulated_annotators": data.simulated,
        "delivery": describe_value(data.delivery),
        "votes_per_item": data.votes_per_item,
        "seed": data.seed,
        "network": type(pl_module.network).__name__,
        "parameters": sum(p.numel() for p in pl_module.network.parameters()),  # pyright: ignore
        "checkpoint": str(trainer.ckpt_path) if trainer.ckpt_path else None,
        "test_items": len(data.corpus.splits["test"]),
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }


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


def write_atomically(path: Path, content: str | bytes) -> None:
    """All or nothing: a reader never sees half a file, whenever the writer is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(partial, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def print_table(results: dict[str, Any], path: Path) -> None:
    crowd = ", SIMULATED annotators" if results["simulated_annotators"] else ""
    table = Table(title=f"{results['dataset']}{crowd}: {results['delivery']['name']}, seed {results['seed']}", title_justify="left")
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name, value in results["metrics"].items():
        table.add_row(name, f"{value:.4f}")
    console = Console()
    console.print(table)
    console.print(f"{results['test_items']} test items, {results['network']}. Written to {path}", soft_wrap=True, highlight=False)
