"""How a training ended, as `training.json` in the run's directory: the last thing that `fit`
writes. Without it a run is not finished.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_type_hints

from core.atomic_io import write_atomically

ENDS = {
    "epochs": "all epochs",
    "steps": "all steps",
    "early_stopping": "early stopping",
    "diverged": "diverged",
}
FILE = "training.json"


@dataclass(frozen=True)
class TrainingRecord:
    """Why a training ended, and how much of what was planned is done.

    >>> TrainingRecord("early_stopping", epochs=14, planned_epochs=200, steps=700).in_words()
    'trained for 14 of 200 epochs (early stopping)'
    """

    ended: str  # one of ENDS
    epochs: int
    planned_epochs: int | None  # None where only steps are
    steps: int | None  # None for runs of earlier versions that left no count
    planned_steps: int | None = None
    reason: str = ""  # of a divergence

    @property
    def diverged(self) -> bool:
        """Whether the training ended without a result."""
        return self.ended == "diverged"

    def in_words(self) -> str:
        """The record as a part of a sentence."""
        of = f" of {self.planned_epochs}" if self.planned_epochs is not None else ""
        planned = self.planned_steps
        steps = f", {self.steps} of {planned} steps" if planned is not None else ""
        return f"trained for {self.epochs}{of} epochs{steps} ({ENDS[self.ended]})"


_KINDS = get_type_hints(TrainingRecord)  # once: a report reads the records of thousands of runs


def write_training(folder: Path, record: TrainingRecord) -> None:
    """Write the record, all or nothing."""
    write_atomically(folder / FILE, json.dumps(asdict(record), indent=1) + "\n")


def as_training(content: Any) -> TrainingRecord | None:
    """A record out of what a file says; None where that is none.

    >>> as_training({"ended": "max_time", "epochs": 3, "planned_epochs": 200, "steps": 90})
    """
    if not isinstance(content, dict) or not content.keys() <= _KINDS.keys():
        return None
    if content.get("ended") not in list(ENDS):
        return None
    try:
        record = TrainingRecord(**content)
    except TypeError:
        return None
    right = all(
        isinstance(value, _KINDS[name]) and not isinstance(value, bool)
        for name, value in asdict(record).items()
    )
    return record if right else None


def divergence(epochs: list[dict[str, float]]) -> str:
    """Why a training has no result, in the words of a pack; empty where all its losses are finite
    numbers.

    >>> divergence([{"epoch": 0, "train/loss": 1.5}, {"epoch": 1, "train/loss": float("nan")}])
    'its loss was nan in epoch 1'
    """
    losses = (
        (int(row["epoch"]), row[name])
        for row in epochs
        for name in ("train/loss", "val/loss")
        if name in row
    )
    wrong = ((epoch, loss) for epoch, loss in losses if not math.isfinite(loss))
    return next((f"its loss was {loss:g} in epoch {epoch}" for epoch, loss in wrong), "")
