"""What is left to do for a run: `fit`, `test`, `predict`, or nothing."""

import json
from pathlib import Path
from typing import Any

from callbacks.results import read_results, read_training
from experiment.build import is_probe
from experiment.run_checkpoints import best_checkpoint


def steps_left(config: dict[str, Any], folder: Path, predict: bool = False) -> list[str]:
    """The commands that make a run whole, in their order.

    A run that diverged has none left: doing it again would end the same.
    """
    results = read_results(folder)
    if results is None:
        record = read_training(folder)
        if record and record.diverged:
            return []
        trained = record is not None and best_checkpoint(folder).exists()
        return [*([] if trained else ["fit"]), "test", *(["predict"] if predict else [])]
    return [
        *(["test"] if missing_probes(config, results) else []),
        *(["predict"] if predict and not (folder / "predictions.parquet").exists() else []),
    ]


def missing_probes(config: dict[str, Any], results: dict[str, Any]) -> list[dict[str, Any]]:
    """The probes of a config that no test of the run has measured yet."""
    return [probe for probe in probes_of(config) if probe not in results.get("probes", [])]


def probes_of(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The probes of a run, as plain data."""
    listed = [
        callback for callback in config["trainer"].get("callbacks") or [] if is_probe(callback)
    ]
    return json.loads(json.dumps(listed, default=str))
