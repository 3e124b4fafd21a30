"""What a process saw and computed while training, as files for tests to compare; on request, the
moment at which it is killed.
"""

import os
import signal
from pathlib import Path
from typing import Any

import torch
from lightning import Callback, LightningModule, Trainer
from torch.optim import Optimizer


class Recorder(Callback):
    """Writes `rank_N.pt` into the run's folder: each step's items and targets, the first gradients,
    and the weights at the end.

    Each epoch's items are written as the epoch ends, too. KILL_AT in the environment is the epoch
    and the step at which the first process is killed.
    """

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.record: dict[str, Any] = {
            "ranks": trainer.world_size,
            "host": os.environ.get("SLURMD_NODENAME", ""),
            "steps": [],
        }

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        self.record["steps"].append((trainer.current_epoch, batch_idx, batch.index, batch.targets))
        if (
            trainer.is_global_zero
            and os.environ.get("KILL_AT") == f"{trainer.current_epoch} {batch_idx}"
        ):
            os.kill(os.getpid(), signal.SIGKILL)

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: Optimizer
    ) -> None:
        gradients = {
            name: parameter.grad.clone()
            for name, parameter in pl_module.named_parameters()
            if parameter.grad is not None
        }
        self.record.setdefault("gradients", []).append(gradients)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        items = torch.cat(
            [step[2] for step in self.record["steps"] if step[0] == trainer.current_epoch]
        )
        name = (
            f"epoch_{trainer.current_epoch}_rank_{trainer.global_rank}_of_{trainer.world_size}.pt"
        )
        torch.save(items, Path(trainer.default_root_dir) / name)

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.record["weights"] = pl_module.state_dict()
        torch.save(self.record, Path(trainer.default_root_dir) / f"rank_{trainer.global_rank}.pt")
