"""Signals in a training are those of `interruption`, where a command has set them, and not
Lightning's.

Lightning's handler of SIGTERM ends a training with exit code 0. With several processes it has them
wait for each other in the middle of a step, from which some never come back.
"""

from lightning import Trainer

from core.compat import SignalConnector, set_signal_connector
from core.interruption import interrupt_on_signals, signals_interrupt


class OwnSignals(SignalConnector):
    """Sets Lightning's handlers, of which that for Slurm's requeue is needed, and ours over those
    of the same signals.
    """

    def register_signal_handlers(self) -> None:
        """Set Lightning's handlers, then ours where a command had set them."""
        ours = signals_interrupt()
        super().register_signal_handlers()
        if ours:
            interrupt_on_signals()


def keep_own_signals(trainer: Trainer) -> None:
    """Have the trainer leave the command's signals alone."""
    set_signal_connector(trainer, OwnSignals(trainer))
