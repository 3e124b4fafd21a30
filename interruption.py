"""Work that is ended from outside: one line that says how far it came, and an exit code that says why."""

import os
import signal
from types import FrameType

TIME_IS_UP = 124  # `trainer.max_time`, as timeout(1) has it
CODES = {signal.SIGINT: 128 + signal.SIGINT, signal.SIGTERM: 128 + signal.SIGTERM}  # 130 and 143, as shells have them


class Interrupted(BaseException):
    """Ended by a signal or by the clock. Like KeyboardInterrupt it is no Exception, so that nobody takes it for a mistake and carries on.

    >>> Interrupted("ended by SIGTERM", 143).code
    143
    """

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.code = code


def interrupt_on_signals() -> None:
    """Have SIGTERM and Ctrl-C raise `Interrupted` in the main thread, the first time. The second ends the process at once, wherever it is."""
    for number in CODES:
        signal.signal(number, _interrupt)


def signals_interrupt() -> bool:
    """Whether `interrupt_on_signals` was called in this process and still holds."""
    return signal.getsignal(signal.SIGTERM) is _interrupt


def is_first_process() -> bool:
    """Whether this is the first of the processes that share a run, or the only one: the one that speaks, and holds the run's folder for all."""
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"))


def _interrupt(number: int, frame: FrameType | None) -> None:
    for signalled in CODES:
        signal.signal(signalled, signal.SIG_DFL)
    name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
    raise Interrupted(f"ended by {name}", CODES[signal.Signals(number)])
