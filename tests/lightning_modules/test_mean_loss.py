"""The mean loss of an epoch is the mean over its items, in whatever precision and batches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning import Callback, Trainer

from datamodules import Digits
from lightning_modules import AnnotatorClassifier
from lightning_modules.mean_loss import MeanLoss
from lightning_modules.networks import SimpleFFN
from tests.lightning_modules.test_classifier import QUIET


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_batches_count_by_their_items(dtype: torch.dtype):
    rng = np.random.default_rng(0)
    losses, items = rng.random(40), rng.integers(0, 9, 40)
    mean = MeanLoss()
    given = torch.tensor(losses, dtype=dtype)
    for loss, number in zip(given, items.tolist(), strict=True):
        mean.update(loss, number)
    result = mean.compute()
    # whatever the precision of the losses, the sum adds little to their own error
    assert result.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    wanted = np.average(given.double().numpy(), weights=items)
    assert result.item() == pytest.approx(wanted, rel=1e-12 if dtype == torch.float64 else 1e-6)
    mean.reset()
    mean.update(torch.tensor(2.0), 3)
    assert mean.compute().item() == 2.0


class Losses(Callback):
    """What the steps returned, and what was known as their mean at the ends of epochs."""

    def __init__(self):
        self.steps, self.means = [], []

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        self.steps.append([])

    def on_train_batch_end(self, trainer, pl_module, outputs: Any, batch, batch_idx) -> None:
        self.steps[-1].append((outputs["loss"].item(), len(batch.inputs)))

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        self.means.append(trainer.callback_metrics["train/loss"].item())


@pytest.mark.parametrize("rhythm", [{}, {"val_check_interval": 0.5}, {"max_steps": 11}], ids=str)
def test_callbacks_find_each_epochs_own_mean(rhythm: dict, tmp_path: Path):
    """Whether validation comes between, or the last epoch is cut off."""
    model, seen = AnnotatorClassifier((1, 8, 8), 10, SimpleFFN), Losses()
    options = {"max_epochs": 2, "limit_train_batches": 7, "limit_val_batches": 1, **QUIET}
    trainer = Trainer(callbacks=[seen], default_root_dir=tmp_path, **options, **rhythm)
    trainer.fit(model, datamodule=Digits(batch_size=50))
    assert [len(steps) for steps in seen.steps] == [7, 4 if rhythm.get("max_steps") else 7]
    for steps, mean in zip(seen.steps, seen.means, strict=True):
        losses, items = np.array(steps).T
        assert mean == pytest.approx(np.average(losses, weights=items), rel=1e-6)


def test_it_is_no_part_of_what_checkpoints_hold():
    assert not [
        name
        for name in AnnotatorClassifier((1, 8, 8), 10, SimpleFFN).state_dict()
        if not name.startswith("network.")
    ]
