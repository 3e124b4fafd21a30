"""The systems that commands run on: Linux and macOS. Any other is told so in one sentence."""

import os
import sys
from importlib import import_module

NEEDED = ("fcntl", "resource")  # modules of Python that only these systems have


def refuse_other_systems() -> None:
    """End with a sentence and exit code 2 where a command could not lock folders or take signals.

    Vote tables, deliveries and metrics need none of it, and work in scripts anywhere.
    """
    absent = [name for name in NEEDED if not _is_there(name)]
    if absent:
        print(
            f"error: Plurality's commands run on Linux and macOS; Python on {sys.platform} has no "
            f"{' and no '.join(absent)}, by which folders are locked and memory is watched.",
            file=sys.stderr,
        )
        sys.exit(2)


def let_waiting_threads_sleep() -> None:
    """Have threads that wait for others sleep, unless the user has said what they do.

    By default they spin. Where other work holds a core, a thread may then be kept from running by
    those that wait for it, and a step takes many times as long (benchmarks/busy.py). It must be
    said before torch is imported.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _is_there(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return False
    return True
