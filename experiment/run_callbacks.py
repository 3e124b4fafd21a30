"""The callbacks that every run has, whatever its config names: checkpoints, records and figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lightning import Callback
from lightning.pytorch.callbacks import ModelCheckpoint

from callbacks import History, PredictionTable, Results, UncertaintyFigures
from callbacks.epochs.interruptions import TimeLimit
from callbacks.records.known_data import KnownData
from experiment.identity import all_options
from experiment.option_defaults import live_defaults
from experiment.run_checkpoints import best_checkpoint
from experiment.steps_left import probes_of

CALIBRATORS = "callbacks.Calibrators"


def add_calibrators(
    callbacks: Sequence[Any] | None, forms: str | Sequence[str] | None
) -> list[Any] | None:
    """The callbacks of a config with the probe that `--calibrate` is short for; a probe that is
    listed keeps its other options.

    >>> add_calibrators([{"class_path": "callbacks.StratumScores"}], "vector")
    [{'class_path': 'callbacks.StratumScores'}, {'class_path': 'callbacks.Calibrators',
    'init_args': {'dirichlet_lambda': 10.0, 'forms': ['vector']}}]
    """
    if not forms:
        return None if callbacks is None else list(callbacks)
    listed = list(callbacks or [])
    wanted = [forms] if isinstance(forms, str) else list(forms)
    own = next((entry for entry in listed if entry["class_path"] == CALIBRATORS), {})
    options = {**live_defaults(CALIBRATORS), **(own.get("init_args") or {}), "forms": wanted}
    others = [entry for entry in listed if entry["class_path"] != CALIBRATORS]
    return [*others, {"class_path": CALIBRATORS, "init_args": dict(sorted(options.items()))}]


def run_callbacks(
    config: Any, run_dir: Path, preview: str, preview_folder: Path | None, keeps_data: bool
) -> list[Callback]:
    """The callbacks of one command on a run.

    Args:
        config: The command's resolved config.
        run_dir: The folder of the run.
        preview: Why what the command finds is no result; empty where it is one.
        preview_folder: Where a preview's findings go.
        keeps_data: Whether the command must see the data that the run was trained on.
    """
    options = config.as_dict()
    checkpoints: dict[str, Any] = {
        "dirpath": best_checkpoint(run_dir).parent,
        "auto_insert_metric_name": False,
        "enable_version_counter": False,
    }
    callbacks: list[Callback] = [
        ModelCheckpoint(filename="best", monitor="val/loss", **checkpoints),
        # whatever the rhythm of validation: only at an epoch's end is there nothing of it that a
        # checkpoint does not hold
        ModelCheckpoint(filename="last", save_on_train_epoch_end=True, **checkpoints),
    ]
    if keeps_data:
        callbacks.append(KnownData(all_options(options), run_dir))
    if config.trainer.max_time:
        callbacks.append(TimeLimit(config.trainer.max_time))
    return [
        *callbacks,
        History(),
        UncertaintyFigures(),
        PredictionTable(),
        Results(preview, preview_folder, probes_of(options)),
    ]
