"""A process that ends with the one that started it, however that ends: nobody is left to work on
what nobody waits for.
"""

import ctypes
import os
import signal
import sys

# tells the processes that Lightning starts for a run with whom to end
FIRST = "PLURALITY_FIRST_PROCESS"


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent ends; one whose parent has ended already ends
    now.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)


def die_with_first_process() -> None:
    """To be called when a command starts: where Lightning started this process, it ends with the
    one that the user started.
    """
    first = os.environ.pop(FIRST, None)
    if first:
        die_with_parent(int(first))
