"""A process that waits where Python does not hear of signals: it ends all the same, and at once at
the second.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from core.interruption import Interrupted
from tests.waiting import HANGS, until

ROOT = Path(__file__).parents[2]
WAITS = """
import ctypes, sys
from core import interruption
interruption.PATIENCE = float(sys.argv[1])
interruption.interrupt_on_signals()
library, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
try:
    print(hex(ctypes.addressof(mutex)), flush=True)
    for _ in range(2):
        library.pthread_mutex_lock(mutex)  # the second time for ever, whatever signal comes
except interruption.Interrupted as stop:
    sys.exit(f"Python was not yet there to wait: {stop}")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="how a mutex begins is Linux's")
@pytest.mark.parametrize(
    ("number", "code", "name"), [(signal.SIGTERM, 143, "SIGTERM"), (signal.SIGINT, 130, "Ctrl-C")]
)
@pytest.mark.parametrize("signals", [1, 2])
def test_a_process_that_waits_for_another_ends(number: int, code: int, name: str, signals: int):
    """In a library, where it sleeps for ever.

    A first signal is waited on for `PATIENCE`, a second is not.
    """
    words = [sys.executable, "-c", WAITS, "0.2" if signals == 1 else "3600"]
    process = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    mutex = process.stdout.readline().strip()
    # there the main thread sleeps
    until(
        lambda: mutex in Path(f"/proc/{process.pid}/task/{process.pid}/syscall").read_text().split()
    )
    process.send_signal(number)
    if signals == 2:
        # equal ones may arrive as one
        process.send_signal(signal.SIGTERM if number == signal.SIGINT else signal.SIGINT)
    _, message = process.communicate(timeout=HANGS)
    names = {code: name} if signals == 1 else {143: "SIGTERM", 130: "Ctrl-C"}
    assert process.returncode in names
    assert message == f"ended by {names[process.returncode]}; the same command continues.\n"


def test_a_line_says_once_how_to_go_on():
    whole = "ended by SIGTERM at epoch 1 of 3; the same command continues."
    assert Interrupted(whole, 143).line() == whole
