"""One at a time: a folder that one process holds against all others.

It is free again when the process ends, however that happens.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from core.errors import InputError
from core.lock_file import (
    QUIET,
    errors_in_words,
    fcntl,
    holder,
    is_at,
    locks_at_once,
    open_lock,
    refuse_other_kinds,
    sign,
)

LOCK = ".lock"  # the file in a folder that stands for it


@contextmanager
def folder_lock(
    folder: Path,
    doing: str,
    wait: bool = True,
    say: Callable[[str], object] = partial(print, flush=True),
) -> Iterator[None]:
    """Hold a folder against other processes and other threads; make it if it is absent.

    `doing` says what the holder does, as in "trains this run". A second process learns who holds
    the folder; then it waits, or with `wait=False` gets an `InputError`. The thread that holds a
    folder may hold it again. The lock is the system's own (flock) on a file in the folder, so it
    ends with the process, however that ends. A process that is forked from the holder does not
    have it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as name, folder_lock(Path(name), "trains this run"):
    ...     with folder_lock(Path(name), "tests this run"):
    ...         print(Path(name, ".lock").read_text())
    held by process ... on ..., which trains this run, since ...
    """
    with _guard:
        lock = _locks.setdefault(os.path.realpath(folder), _Lock())
    if not lock.turn.acquire(timeout=QUIET):
        _tell(folder, "held by another thread of this process", wait, say)
        lock.turn.acquire()
    try:
        if not lock.holders:
            lock.file = _take(folder, doing, wait, say)
        lock.holders += 1
        try:
            yield
        finally:
            lock.leave()
    finally:
        lock.turn.release()


def remove_if_empty(folder: Path) -> None:
    """Remove a folder that is held, if there is nothing in it but its lock.

    A process that waits for the folder makes it anew.
    """
    if [path.name for path in folder.iterdir()] == [LOCK]:
        (folder / LOCK).unlink()
        folder.rmdir()


def is_writable(folder: Path) -> bool:
    """Whether a folder can be written, or made if it is absent.

    On a disk that is mounted read-only not even root can.
    """
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return os.access(there, os.W_OK | os.X_OK)


class _Lock:
    """What this process knows of one folder.

    That is whose turn it is among its threads, and the open file while one of them holds it.
    """

    def __init__(self):
        self.turn, self.file, self.holders = threading.RLock(), -1, 0

    def leave(self) -> None:
        if not self.holders:  # this process was forked from the holder
            return
        self.holders -= 1
        if not self.holders:
            try:
                os.ftruncate(self.file, 0)  # nobody has it
            finally:
                _close(self.file)


_locks: dict[str, _Lock] = {}  # by the folder's real path
_files: set[int] = set()  # all that are open
_guard = threading.Lock()  # of these two


def _take(folder: Path, doing: str, wait: bool, say: Callable[[str], object]) -> int:
    """The open file of a lock that this process now has."""
    if fcntl is None:
        raise InputError(
            f"{folder} cannot be held against other processes: this system has no flock; use "
            "Linux or macOS."
        )
    path = folder / LOCK
    for _ in range(100):
        file = _open(path)
        try:
            with errors_in_words(path):
                if not locks_at_once(file):
                    _tell(folder, holder(file), wait, say)
                    fcntl.flock(file, fcntl.LOCK_EX)
            if is_at(file, path):
                sign(file, path, doing)
                return file
        except BaseException:
            _close(file)
            raise
        _close(file)  # the folder was deleted meanwhile; it is made and held anew
    raise InputError(
        f"{path} is another file whenever it is opened, so it cannot be locked; name a folder on "
        "another disk."
    )


def _open(path: Path) -> int:
    """The open file, known to `_forget`."""
    with errors_in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _guard:
            file = open_lock(path)
            _files.add(file)
        try:
            refuse_other_kinds(file)
        except OSError:
            _close(file)
            raise
    return file


def _close(file: int) -> None:
    with _guard:
        _files.discard(file)
        os.close(file)


def _tell(folder: Path, held: str, wait: bool, say: Callable[[str], object]) -> None:
    if not wait:
        raise InputError(f"{folder} is {held}; wait for it to end, or stop it.")
    say(f"{folder} is {held}; waiting for it to end")


def _forget() -> None:
    """A forked process holds nothing of what its parent holds.

    It closes the files, so that they stay locked no longer than the parent lives.
    """
    global _guard
    _guard = threading.Lock()
    for file in _files:
        os.close(file)
    for lock in _locks.values():
        lock.holders = 0
    _files.clear()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _guard.acquire(),
        after_in_parent=lambda: _guard.release(),
        after_in_child=_forget,
    )
