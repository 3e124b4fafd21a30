"""The processes of one run end together: what ends one of them is told once, and the others end
with it.

A process that fails asks the store at which all of them met (torch.distributed's) whether another
failed before it. The first one tells why; those that only lost their connection to it say nothing.
Processes that wait elsewhere are ended by who started them: `ddp_launcher`, torchrun, or srun with
`--kill-on-bad-exit`.
"""

import os
import sys
import traceback
from contextlib import suppress
from datetime import timedelta
from typing import Any, NoReturn

from core.errors import InputError, mistake_behind
from core.interruption import Interrupted, is_first_process

# in the store: the rank and exit code of the first that failed, and that it has said why
FAILED, TOLD = "plurality/failed", "plurality/told"
PATIENCE = 30.0  # seconds for this process to end of what has ended another
TELLING = 300.0  # seconds for another process to say so, on a machine as busy as can be


def tell_and_end(error: Exception) -> None:
    """End this process, and so the run: a user's mistake is one sentence and exit code 2.

    Of a process alone, any other error is left to the caller.
    """
    mistake = mistake_behind(error) or taken_port(error)
    alone = not _have_met()
    if mistake is None and alone:
        return
    code, store = 1 if mistake is None else 2, _store()
    before = _failed_before(store, code)
    if before is None:
        traceback.print_exception(error) if mistake is None else _say(str(mistake))
        _have_told(store)
    sys.exit(before or code) if alone else end(before or code)


def end_interrupted(stop: Interrupted) -> NoReturn:
    """End this process after a signal, or because time is up, and say so once: where several
    processes share the run, the one that it reached first does.
    """
    alone = not _have_met()
    if alone and is_first_process():
        print(stop.line(), file=sys.stderr)
    if alone:
        sys.exit(stop.code)
    store = _store()
    before = _failed_before(store, stop.code)
    if before is None:
        print(stop.line(), file=sys.stderr)
        _have_told(store)
    end(before or stop.code)


def _have_told(store: Any) -> None:
    if store is not None:
        with suppress(RuntimeError):  # whoever had the store has ended
            store.set(TOLD, "")


def taken_port(error: BaseException | None) -> InputError | None:
    """The sentence for a port at which the processes were to meet and that another program has."""
    while error is not None and not (
        type(error).__name__ == "DistNetworkError" and "EADDRINUSE" in str(error)
    ):
        error = error.__cause__ or error.__context__
    port = os.environ.get("MASTER_PORT")
    message = (
        f"MASTER_PORT is {port}, which another program on this machine uses; set it to a "
        "free port, or leave it out and one is found."
    )
    return InputError(message) if error else None


def check_port() -> None:
    """Refuse what cannot be a port before processes try to meet there."""
    port = os.environ.get("MASTER_PORT")
    if port is not None and not (port.isdecimal() and int(port) < 65536):
        raise InputError(
            f"MASTER_PORT is {port}; it must be a number from 0 to 65535, or left out, and a free "
            "one is found."
        )


def end(code: int) -> NoReturn:
    """End this process at once: an ordinary exit may wait for a process that has ended."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def leave_group() -> None:
    """Part from the other processes, as the last thing before Python's end: gloo's threads, where
    they still run then, abort a process that has done its work (exit code 134).
    """
    if _have_met():
        sys.modules["torch.distributed"].destroy_process_group()


def _failed_before(store: Any, code: int) -> int | None:
    """The exit code of the process of this run that failed before this one, once that has told why;
    None where none did.
    """
    if store is None:
        return None
    mine = f"{_rank()} {code}"
    try:
        first = store.compare_set(FAILED, "", mine).decode()
        if first == mine:
            return None
        store.wait([TOLD], timedelta(seconds=TELLING))
        return int(first.split()[1])
    except RuntimeError:
        # the store ended with the first process, which has told why, or was killed
        if code == 2:
            return None
        _say("the first process of this run has ended.")
        return code


def _store() -> Any:
    """Where the processes of a run leave each other a word, if there is such a place.

    Those that torchrun starts have one before they have met.
    """
    if _have_met():
        from core.compat import default_store

        return default_store()
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        from torch.distributed import (  # documented, though not in its `__all__`
            PrefixStore,  # pyright: ignore[reportPrivateImportUsage]
            TCPStore,  # pyright: ignore[reportPrivateImportUsage]
        )

        torchrun = TCPStore(
            os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False
        )
        return PrefixStore(f"plurality/{os.environ['TORCHELASTIC_RESTART_COUNT']}", torchrun)
    return None


def _have_met() -> bool:
    """Whether this process is one of several that talk to each other.

    A command that has not imported torch, which takes seconds, is not.
    """
    dist = sys.modules.get("torch.distributed")
    return (
        dist is not None
        and dist.is_available()
        and dist.is_initialized()
        and dist.get_world_size() > 1
    )


def _rank() -> int:
    if _have_met():
        return sys.modules["torch.distributed"].get_rank()
    names = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
    return next((int(os.environ[name]) for name in names if os.environ.get(name)), 0)


def _say(sentence: str) -> None:
    where = f" on rank {_rank()}" if _rank() else ""
    print(f"error{where}: {sentence}", file=sys.stderr)
