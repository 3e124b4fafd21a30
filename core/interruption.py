"""Work that is ended from outside: a line that says how far it came, an exit code that says why."""

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

TIME_IS_UP = 124  # `trainer.max_time`, as timeout(1) has it
DIVERGED = 3  # of what has come to an end but to no result: trying again would not mend it
# 130 and 143, as shells have them
CODES = {number: 128 + number for number in (signal.SIGINT, signal.SIGTERM)}
CONTINUES = "the same command continues"
PATIENCE = 30.0  # seconds for Python to take a signal up


class Interrupted(BaseException):
    """Ended by a signal or by the clock.

    Like KeyboardInterrupt it is no Exception, so that nobody takes it for a mistake and carries on.

    >>> Interrupted("ended by SIGTERM", 143).code
    143
    """

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.code = code

    def line(self) -> str:
        """What is said of it at the end, which always says how to go on.

        >>> Interrupted("ended by SIGTERM", 143).line()
        'ended by SIGTERM; the same command continues.'
        """
        message = str(self)
        return message if CONTINUES in message else f"{message}; {CONTINUES}."


def interrupt_on_signals() -> None:
    """Have the first SIGTERM or Ctrl-C raise `Interrupted` in the main thread.

    A second one ends the process at once, wherever it is.

    Python handles a signal between two of its own steps. A process that waits elsewhere, for
    instance for another one to call it, ends after `PATIENCE`.
    """
    for number in CODES:
        signal.signal(number, _interrupt)
    _watch()


def signals_interrupt() -> bool:
    """Whether `interrupt_on_signals` was called in this process and still holds."""
    return signal.getsignal(signal.SIGTERM) is _interrupt


def is_first_process() -> bool:
    """Whether this is the first of the processes that share a run, or the only one.

    That one prints, and holds the run's folder for all.
    """
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"))


_taken_up = threading.Event()
_watched_by = 0  # the process that has a watch


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _taken_up.is_set():  # who ends a training puts back the handlers that there were
        os._exit(CODES[signal.Signals(number)])
    _taken_up.set()
    for signalled in CODES:
        signal.signal(signalled, signal.SIG_DFL)
    raise Interrupted(f"ended by {_name(number)}", CODES[signal.Signals(number)])


def _name(number: int) -> str:
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


def _watch() -> None:
    """Start the thread that hears of signals when they come, once in each process."""
    global _watched_by
    if _watched_by == os.getpid():
        return
    _watched_by = os.getpid()
    _taken_up.clear()
    heard, sent = os.pipe()
    os.set_blocking(sent, False)
    signal.set_wakeup_fd(sent, warn_on_full_buffer=False)
    threading.Thread(target=_end_what_waits, args=(heard,), daemon=True).start()


def _end_what_waits(heard: int) -> None:
    """End the process at a signal that is not taken up in time, or at once at a second one."""
    first = _next_signal(heard)
    threading.Thread(target=lambda: _end(_next_signal(heard)), daemon=True).start()
    if not _taken_up.wait(PATIENCE):
        _end(first)


def _next_signal(heard: int) -> int:
    while (number := os.read(heard, 1)[0]) not in list(CODES):
        pass
    return number


def _end(number: int) -> None:
    if not _taken_up.is_set():  # else the main thread is about to say more
        print(Interrupted(f"ended by {_name(number)}", 0).line(), file=sys.stderr, flush=True)
        os._exit(CODES[signal.Signals(number)])


def _forget_watch() -> None:
    """A forked process has no such thread, and must not write to that of its parent."""
    with suppress(ValueError):
        signal.set_wakeup_fd(-1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_watch)
