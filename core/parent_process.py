"""A process that ends with the one that started it, however that ends.

So no process is left that works on what nobody waits for.
"""

import ctypes
import os
import signal
import sys

# tells the processes that Lightning starts for a run with whom to end
FIRST = "PLURALITY_FIRST_PROCESS"


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent ends; exit if that has happened already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)


def die_with_first_process() -> None:
    """Have a process that Lightning started end with the one that the user started.

    Every command calls it first.
    """
    first = os.environ.pop(FIRST, None)
    if first:
        die_with_parent(int(first))
