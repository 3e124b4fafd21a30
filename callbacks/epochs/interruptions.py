"""Training that is ended by `trainer.max_time`, to be continued by the same command."""

from datetime import timedelta

from lightning import LightningModule, Trainer
from lightning.pytorch.callbacks import Timer

from core.interruption import TIME_IS_UP, Interrupted


class TimeLimit(Timer):
    """Lightning's Timer, except that it interrupts: it says so by an error instead of ending the
    training as if it were complete.

    An epoch that is cut leaves nothing behind, because checkpoints are made at the ends of epochs;
    it is done again. Every command has the whole time, so that a run which was continued is not at
    its end before it begins.
    """

    changes_training = False

    def __init__(self, duration: str | timedelta | dict[str, int]):
        super().__init__(duration, verbose=False)
        self.words = str(timedelta(seconds=super().time_remaining() or 0))

    def on_fit_start(self, trainer: Trainer, *args, **kwargs) -> None:
        """Nothing: there is time."""

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin no epoch when time is up."""
        self._check(trainer)

    def on_train_batch_end(self, trainer: Trainer, *args, **kwargs) -> None:
        """Interrupt an epoch when time is up."""
        if not trainer.is_last_batch:  # else the epoch may end, and its checkpoint be made
            self._check(trainer)

    def _check(self, trainer: Trainer) -> None:
        left = self.time_remaining()
        if trainer.strategy.broadcast(left is not None and left <= 0):
            raise Interrupted(f"trainer.max_time ({self.words}) is over", TIME_IS_UP)

    def state_dict(self) -> dict:
        """Nothing is kept: every command has the whole time."""
        return {}

    def load_state_dict(self, state_dict: dict) -> None:
        """Nothing is taken over from an earlier command."""
