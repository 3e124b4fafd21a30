"""A process that waits where Python does not hear of signals: it ends all the same, and at once at the second."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from interruption import Interrupted
from tests.waiting import HANGS

ROOT = Path(__file__).parents[1]
WAITS = """
import interruption, sys
from datetime import timedelta
from torch.distributed import TCPStore
interruption.PATIENCE = float(sys.argv[2])
interruption.interrupt_on_signals()
print("waits", flush=True)
TCPStore("127.0.0.1", int(sys.argv[1]), is_master=False, timeout=timedelta(hours=1))
"""


@pytest.mark.parametrize(("number", "code", "name"), [(signal.SIGTERM, 143, "SIGTERM"), (signal.SIGINT, 130, "Ctrl-C")])
@pytest.mark.parametrize("signals", [1, 2])
def test_a_process_that_waits_for_another_ends(number: int, code: int, name: str, signals: int):
    """At a port that nobody answers at. A first signal is waited on for `PATIENCE`, a second is not."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # taken, but nobody listens
        words = [sys.executable, "-c", WAITS, str(silent.getsockname()[1]), "0.2" if signals == 1 else "3600"]
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout
        assert process.stdout.readline() == "waits\n"
        process.send_signal(number)
        if signals == 2:
            process.send_signal(signal.SIGTERM if number == signal.SIGINT else signal.SIGINT)  # equal ones may arrive as one
        _, said = process.communicate(timeout=HANGS)
    assert process.returncode in ({code} if signals == 1 else {130, 143})
    told = [line for line in said.splitlines() if line.startswith("ended by")]  # torch complains beside it that nobody answers
    names = {name} if signals == 1 else {"SIGTERM", "Ctrl-C"}
    assert len(told) == 1
    assert told[0] in {f"ended by {each}; the same command continues." for each in names}


def test_a_line_says_once_how_to_go_on():
    whole = "ended by SIGTERM at epoch 1 of 3; the same command continues."
    assert Interrupted(whole, 143).line() == whole
