"""A callback that times training steps, by its path in a config or as an object."""

from time import perf_counter
from typing import ClassVar

from lightning import Callback


class StepTimes(Callback):
    """The mean duration of a training step, epoch by epoch."""

    seconds: ClassVar[list[float]] = []  # of all that were made: the command line makes its own

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        """Start the clock."""
        self._start, self._first = perf_counter(), trainer.global_step

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx) -> None:
        """Stop it after the last step, before any validation."""
        if trainer.is_last_batch:
            steps = trainer.global_step - self._first
            StepTimes.seconds.append((perf_counter() - self._start) / steps)
