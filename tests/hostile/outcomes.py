"""The only two ways in which reading a hostile file may end: a result, or an InputError of one
sentence that names the file.
"""

import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from core.errors import InputError, OptionError
from tests.waiting import HANGS

Outcome = Literal["result", "sentence"]
SECONDS = 10.0  # of computing; a case takes milliseconds, so what takes longer than this hangs
MEMORY = 2**30  # bytes beyond what the process has already


class Hang(BaseException):
    """Not an Exception, so that no reader can take it for a mistake in the file."""


def outcome(read: Callable[[], Any], *names: str) -> Outcome:
    """How a reader ends.

    Anything but a result or a sentence that has one of the names in it is raised, for the test to
    fail with.
    """
    try:
        with limits():
            read()
    except (InputError, OptionError) as error:
        check_sentence(str(error), *names)
        return "sentence"
    return "result"


def check_sentence(text: str, *names: str) -> None:
    """One line, not too long to read, that ends as a sentence does and names what is wrong."""
    assert text.isprintable(), f"more than one line, or characters that a terminal obeys: {text!r}"
    assert text.endswith("."), f"not a sentence: {text}"
    assert len(text) <= 1000, f"too long: {text}"
    assert not names or any(name in text for name in names), f"names none of {names}: {text}"


@contextmanager
def limits(
    seconds: float = SECONDS, memory: int = MEMORY, waiting: float = HANGS
) -> Iterator[None]:
    """Within a time, by a core and by the clock, and with so much more memory: what would hang
    raises Hang, what would take all memory a MemoryError.
    """

    def stop(number: int, frame: Any) -> None:
        raise Hang(f"no end after {seconds:g} s of a core or {waiting:g} s by the clock")

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, seconds),
        signal.SIGALRM: (signal.ITIMER_REAL, waiting),
    }
    before, (soft, hard) = (
        {number: signal.signal(number, stop) for number in timers},
        resource.getrlimit(resource.RLIMIT_AS),
    )
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, hard))
    for timer, after in timers.values():
        signal.setitimer(timer, after)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
