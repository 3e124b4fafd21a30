"""A probe that also follows training: Lightning's hooks on one side, an `EpochFollower` on the
other.
"""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning import LightningModule, Trainer
from torch import Tensor

from callbacks.epochs.split_predictions import (
    gather_predictions,
    split_predictions,
    split_scores,
)
from callbacks.history import training_pauses_to_validate
from callbacks.probe import Probe, ProbeResult, own_hooks
from datamodules import VoteDataModule, VoteTable
from lightning_modules import AnnotatorClassifier
from lightning_modules.epoch_follower import (
    EpochFollower,
    columns_of_epoch,
    columns_of_validation,
)


class EpochProbe(Probe):
    """Has a follower for each training, whose columns go to `history.json` (through `History`) and
    TensorBoard, and whose state to checkpoints.

    A subclass says in `follow` what follows, and overrides none of the hooks: packs call the
    follower themselves.
    """

    _follower: EpochFollower | None = None
    _state: dict[str, Any] | None = None  # of a checkpoint, until there is a follower
    _batches: list[tuple[Tensor, Tensor]]  # index and probs of the validation that goes on
    _validated = -1  # the last epoch with a validation

    @abstractmethod
    def follow(self, data: VoteDataModule, labels: VoteTable, folder: Path) -> EpochFollower:
        """What follows a training on data that is set up.

        `labels` are what all items are labelled with in training, and `folder` is where the run's
        files are.
        """

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """Nothing after a test, unless a subclass says more."""
        return ProbeResult()

    @classmethod
    def can_be_packed(cls) -> bool:
        """Packs call the follower where Lightning would call the hooks below, but no others."""
        return not own_hooks(cls, EpochProbe)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin to follow, or go on from a checkpoint's state."""
        data, state = _data(trainer), self.state_dict()
        self._follower = self.follow(data, data.training_votes(), Path(trainer.default_root_dir))
        if state:
            self._follower.load_state_dict(state)

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget what an earlier validation left."""
        self._batches = []

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Collect predictions, where the follower wants them."""
        if training_pauses_to_validate(trainer) and self._following.follows_validation:
            self._batches.append((outputs.index, outputs.probs))

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Let the follower look at them."""
        if not training_pauses_to_validate(trainer):
            return
        self._validated = trainer.current_epoch
        if self._following.follows_validation:
            prediction = gather_predictions(self._batches, _data(trainer))
            _log(pl_module, columns_of_validation(self._following, prediction))

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Let the follower look at the epoch."""
        assert isinstance(pl_module, AnnotatorClassifier)
        data = _data(trainer)

        def scores(split: str) -> dict[str, float]:
            same = split == "val" or (
                data.validation_probs is None and np.array_equal(data.rows(split), data.rows("val"))
            )
            if same and self._validated == trainer.current_epoch:
                names = [str(name) for name in pl_module.val_metrics.keys()]  # noqa: SIM118
                result = {name: trainer.callback_metrics[name] for name in names}
            else:
                result = split_scores(pl_module, data, split)
            return {name.partition("/")[2]: float(value) for name, value in result.items()}

        def predictions(split: str):
            return split_predictions(pl_module, data, split)

        number = trainer.current_epoch
        _log(pl_module, columns_of_epoch(self._following, number, predictions, scores))

    def state_dict(self) -> dict[str, Any]:
        """The follower's, which a checkpoint keeps."""
        return self._follower.state_dict() if self._follower else self._state or {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Lightning calls this before `on_fit_start`, so before there is a follower."""
        self._state, self._follower = state_dict, None

    @property
    def _following(self) -> EpochFollower:
        assert self._follower is not None  # since `on_fit_start`
        return self._follower


def _data(trainer: Trainer) -> VoteDataModule:
    return trainer.datamodule  # pyright: ignore[reportAttributeAccessIssue]


def _log(pl_module: LightningModule, columns: Mapping[str, float]) -> None:
    """In double precision, as a pack keeps them."""
    if columns:
        pl_module.log_dict(
            {name: torch.tensor(value, dtype=torch.float64) for name, value in columns.items()},
            sync_dist=True,
        )
