"""What each epoch of training came to, as `history.json` in the run's directory: one list, the same
for runs alone and in packs.
"""

import json
from pathlib import Path
from typing import Any

from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from core.atomic_io import write_atomically
from core.errors import InputError
from core.read_json import is_number, read_json, with_nan, without_nan

# of each epoch: its number, learning rate, train/loss, all val/ scores, and what followers add
Epochs = list[dict[str, float]]
MOST_EPOCHS = 10**9


class History(Callback):
    """Writes every epoch's learning rate, training loss and validation scores as soon as it ends.

    The list is kept in checkpoints, which are made at the ends of epochs, so that an interrupted
    run ends with the same file as one that was not.
    """

    changes_training = False

    def __init__(self):
        self.epochs: Epochs = []

    def state_dict(self) -> dict[str, Any]:
        """All epochs so far."""
        return {"epochs": self.epochs}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on after these."""
        self.epochs = state_dict["epochs"]

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin a row: schedules are stepped before validation, so only now is the learning rate
        known.
        """
        self._current(trainer)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take note of validation's scores, the last of several."""
        if training_pauses_to_validate(trainer):
            self._current(trainer).update(_scores(trainer, "val/"))

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take note of all other scores, and write."""
        self._current(trainer).update(_scores(trainer, "train/", "test/"))
        if trainer.is_global_zero:
            write_history(Path(trainer.default_root_dir), self.epochs)

    def _current(self, trainer: Trainer) -> dict[str, float]:
        """The row of the current epoch."""
        if not self.epochs or self.epochs[-1]["epoch"] != trainer.current_epoch:
            self.epochs.append(
                {"epoch": trainer.current_epoch, "lr": trainer.optimizers[0].param_groups[0]["lr"]}
            )
        return self.epochs[-1]


def _scores(trainer: Trainer, *kinds: str) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in trainer.callback_metrics.items()
        if name.startswith(kinds)
    }


def training_pauses_to_validate(trainer: Trainer) -> bool:
    """Whether a validation belongs to an epoch of training: not the sanity check before it, nor a
    validation for its own sake.
    """
    return trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking


def write_history(folder: Path, epochs: Epochs) -> None:
    """As `history.json`; what is not a finite number becomes null."""
    write_atomically(
        folder / "history.json", json.dumps(without_nan(epochs), indent=1, allow_nan=False) + "\n"
    )


def read_history(folder: Path) -> Epochs | None:
    """A run's epochs; None where it was not trained here."""
    path = folder / "history.json"
    if not path.exists():
        return None
    epochs = read_json(path)
    if not isinstance(epochs, list) or not all(_is_epoch(epoch) for epoch in epochs):
        raise InputError(
            f"{path} is not a list of epochs that can be read; delete it, or fit this run again."
        )
    return [with_nan(epoch) for epoch in epochs]


def _is_epoch(entry: Any) -> bool:
    if not isinstance(entry, dict) or not all(
        value is None or is_number(value) for value in entry.values()
    ):
        return False
    epoch = entry.get("epoch")
    return epoch is not None and 0 <= epoch < MOST_EPOCHS and epoch == int(epoch)
