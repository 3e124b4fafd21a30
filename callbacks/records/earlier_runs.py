"""Runs of earlier versions, which recorded no end of training: they are finished by the evidence
that they left, or not at all.

The evidence is `history.json` beside the `config.yaml` that it was trained with. It must hold every
epoch of the plan, or as many as early stopping's rule asks for when it is applied to the history
anew; and `last.ckpt`, which runs alone left and packs did not, must lie at the end of the last of
them. What `max_time` or `max_steps` may have cut is not trusted: such a run is done again.
"""

import math
from pathlib import Path
from typing import Any

import torch
import yaml

from callbacks.records.training_record import TrainingRecord, divergence
from core.plain_yaml import read_plain
from core.read_json import is_number, read_json
from lightning_modules.resuming import is_mid_epoch


def training_by_evidence(folder: Path) -> TrainingRecord | None:
    """How the training of a run without a record ended; None where its files do not prove that it
    did.
    """
    failure = read_json(folder / "failed.json")
    history, trainer = read_json(folder / "history.json"), _trainer_options(folder / "config.yaml")
    rows = [row for row in history if isinstance(row, dict)] if isinstance(history, list) else []
    if isinstance(failure, dict) and isinstance(failure.get("reason"), str):
        return TrainingRecord("diverged", len(rows), None, None, reason=failure["reason"])
    planned = trainer.get("max_epochs")
    may_be_cut = trainer.get("max_steps", -1) != -1 or trainer.get("max_time") is not None
    if not rows or type(planned) is not int or may_be_cut:
        return None
    in_order = [row.get("epoch") for row in rows] == list(range(len(rows)))
    if not in_order or not all(is_number(value) for row in rows for value in row.values()):
        return None
    if reason := divergence(rows):
        return TrainingRecord("diverged", len(rows), planned, None, reason=reason)
    ended = None
    if len(rows) == planned:
        ended = "epochs"
    elif _stopped_early(rows, trainer):
        ended = "early_stopping"
    if ended is None or not _ends_with(folder / "checkpoints" / "last.ckpt", len(rows)):
        return None
    return TrainingRecord(ended, len(rows), planned, None)


def _trainer_options(path: Path) -> dict[str, Any]:
    try:
        config = read_plain(path)
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    trainer = config.get("trainer") if isinstance(config, dict) else None
    return trainer if isinstance(trainer, dict) else {}


def _stopped_early(rows: list[dict[str, float]], trainer: dict[str, Any]) -> bool:
    """Whether early stopping, applied to the history, ends it after exactly these epochs."""
    callbacks = trainer.get("callbacks")
    listed = callbacks if isinstance(callbacks, list) else []
    entries = [entry for entry in listed if isinstance(entry, dict)]
    rules = [
        entry.get("init_args") or {}
        for entry in entries
        if str(entry.get("class_path")).endswith(".EarlyStopping")
    ]
    if len(rules) != 1 or not isinstance(rules[0], dict) or rules[0].get("mode", "min") != "min":
        return False
    monitor, patience = rules[0].get("monitor"), rules[0].get("patience", 3)
    least = rules[0].get("min_delta", 0.0)
    if not isinstance(monitor, str) or monitor not in rows[0]:
        return False
    if type(patience) is not int or not is_number(least):
        return False
    best, waited = math.inf, []
    for row in rows:
        score = row.get(monitor, math.nan)
        if score + abs(least) < best:
            best = score
            waited.append(0)
        else:
            waited.append(waited[-1] + 1 if waited else 1)
    return waited[-1] >= patience and all(wait < patience for wait in waited[:-1])


def _ends_with(last: Path, epochs: int) -> bool:
    """Whether the last checkpoint is of this many whole epochs; packs of earlier versions, which
    wrote a run only when it was complete, have none.
    """
    if not last.exists():
        return True
    try:
        content = torch.load(last, map_location="cpu", weights_only=True)
        return content["epoch"] == epochs - 1 and not is_mid_epoch(content)
    except Exception:  # torch, zipfile and pickle each raise their own
        return False  # what cannot be read proves nothing
