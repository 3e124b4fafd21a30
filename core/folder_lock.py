"""One at a time: a folder that one process holds against all others, and that is free again however
the process ends.
"""

import errno
import os
import re
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from core.atomic_io import naming
from core.errors import InputError

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None

LOCK = ".lock"  # the file in a folder that stands for it
# seconds before anyone is told of waiting: the holder may be about to end, or to write who it is
QUIET = 0.2
_OURS = re.compile(rb"held by process \d+ on ")
_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


@contextmanager
def folder_lock(
    folder: Path,
    doing: str,
    wait: bool = True,
    say: Callable[[str], object] = partial(print, flush=True),
) -> Iterator[None]:
    """Hold a folder, which is made where it is absent, against other processes and other threads.

    `doing` says what the holder does, as in "trains this run". Whoever comes second is told who has
    it, and waits (`wait`) or gets an `InputError`. The thread that holds a folder may hold it
    again. The lock is the system's own (flock) on a file in the folder, so it ends with the
    process, however that ends. A process that was forked from the holder does not have it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as name, folder_lock(Path(name),
    ...     "trains this run"), folder_lock(Path(name), "tests this run"):
    ...     print(Path(name, ".lock").read_text())
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
    """Remove a folder that is held and in which there is nothing but its lock; whoever waits for it
    makes it anew.
    """
    if [path.name for path in folder.iterdir()] == [LOCK]:
        (folder / LOCK).unlink()
        folder.rmdir()


def is_writable(folder: Path) -> bool:
    """Whether a folder, or one that would have to be made, can be written: on a disk that is
    mounted read-only not even root can.
    """
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return os.access(there, os.W_OK | os.X_OK)


class _Lock:
    """What this process knows of one folder: whose turn it is among its threads, and the open file
    while one of them holds it.
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
            with _in_words(path):
                if not _at_once(file):
                    _tell(folder, _holder(file), wait, say)
                    fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file, path):
                _sign(file, path, doing)
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
    """Opened without following a link, and without changing what is there."""
    with _in_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _guard:
            file = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666
            )
            _files.add(file)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            _close(file)
            raise IsADirectoryError(errno.EISDIR, "not a file")  # nor is a pipe or a device
    return file


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _close(file: int) -> None:
    with _guard:
        _files.discard(file)
        os.close(file)


def _at_once(file: int) -> bool:
    """Whether the lock can be had without waiting for anyone."""
    assert fcntl is not None
    end = time.monotonic() + QUIET
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
        time.sleep(QUIET / 40)


def _tell(folder: Path, held: str, wait: bool, say: Callable[[str], object]) -> None:
    if not wait:
        raise InputError(f"{folder} is {held}; wait for it to end, or stop it.")
    say(f"{folder} is {held}; waiting for it to end")


def _holder(file: int) -> str:
    """What the holder has written of itself, as a line that is safe to print."""
    held = os.pread(file, 500, 0)
    line = held.decode(errors="replace").partition("\n")[0]
    return (
        "".join(filter(str.isprintable, line)) if _OURS.match(held) else "held by another process"
    )


def _sign(file: int, path: Path, doing: str) -> None:
    """Write who has the lock, unless what the file holds is somebody else's."""
    held = os.pread(file, 500, 0).strip(b"\0")
    if held and not _OURS.match(held):
        raise InputError(
            f"{path} is not a lock of ours but holds something else; move it, so that the folder "
            "can be held."
        )
    message = (
        f"held by process {os.getpid()} on {socket.gethostname()}, which {doing}, "
        f"since {time.strftime('%Y-%m-%d %H:%M:%S')}\n"
    ).encode()
    with naming(path):
        os.pwrite(file, message, 0)
        os.ftruncate(file, len(message))


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Say what a person can do about an error; other errors, as of a full disk, are none of
    a lock.
    """
    try:
        yield
    except OSError as error:
        why = {
            **dict.fromkeys(
                _UNWRITABLE,
                f"{path.parent} cannot be written ({error.strerror}); name a folder that can.",
            ),
            **dict.fromkeys(
                _WITHOUT_LOCKS,
                f"the disk of {path.parent} has no locks ({error.strerror}), so that two "
                "processes could spoil each other's files; "
                "mount it with flock, or name a folder on another disk.",
            ),
            errno.ELOOP: f"{path} is a link, and a lock follows none; remove it.",
            errno.EISDIR: f"{path} is not a file, so it cannot be locked; remove it.",
            errno.ENXIO: f"{path} is not a file, so it cannot be locked; remove it.",
            errno.EEXIST: f"{path.parent} is not a folder but a file or a broken link; name a "
            "folder.",
            errno.ENOTDIR: f"{path.parent} cannot be a folder, because something above it is a "
            "file; name another.",
        }.get(error.errno or 0)
        if why is None:
            raise
        raise InputError(why) from error


def _forget() -> None:
    """A forked process has nothing of what its parent has.

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
