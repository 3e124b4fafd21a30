"""Learning-rate schedules that need to know how long the run is.

All of torch's own can be named in a config as well.
"""

from typing import Any

from lightning.pytorch.utilities.types import LRSchedulerConfigType, OptimizerLRSchedulerConfig
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau


class CosineToEnd(CosineAnnealingLR):
    """Cosine annealing to 0 over the whole run, however long `trainer.max_epochs` makes it.

    torch's CosineAnnealingLR wants the length spelled out a second time, and turns up again if it
    is forgotten when max_epochs changes. `with_schedule` fills it in.
    """

    def __init__(self, optimizer: Optimizer):
        super().__init__(optimizer, T_max=1)


def with_schedule(optimizer: Optimizer, scheduler: Any, epochs: int) -> OptimizerLRSchedulerConfig:
    """An optimizer with its schedule, stepped once per epoch, as Lightning takes them."""
    if isinstance(scheduler, CosineToEnd):
        scheduler.T_max = epochs
    entry: LRSchedulerConfigType = {"scheduler": scheduler, "interval": "epoch"}
    if isinstance(scheduler, ReduceLROnPlateau):
        entry["monitor"] = "val/loss"
    return {"optimizer": optimizer, "lr_scheduler": entry}
