"""The file that stands for a held folder: how it is opened, locked, and signed by its holder."""

import errno
import os
import re
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.atomic_io import naming
from core.errors import InputError

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None

# seconds before anyone is told of waiting: the holder may be about to end, or to write who it is
QUIET = 0.2
_OURS = re.compile(rb"held by process \d+ on ")
_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def open_lock(path: Path) -> int:
    """Open the file without following a link, and without changing what is there."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.open(path, flags, 0o666)


def refuse_other_kinds(file: int) -> None:
    """Raises an `IsADirectoryError` for what is no regular file: a pipe or a device."""
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise IsADirectoryError(errno.EISDIR, "not a file")


def is_at(file: int, path: Path) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def locks_at_once(file: int) -> bool:
    """Take the lock if it is free within QUIET; says whether it was."""
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


def holder(file: int) -> str:
    """What the holder has written of itself, as a line that is safe to print."""
    held = os.pread(file, 500, 0)
    if not _OURS.match(held):
        return "held by another process"
    line = held.decode(errors="replace").partition("\n")[0]
    return "".join(filter(str.isprintable, line))


def sign(file: int, path: Path, doing: str) -> None:
    """Write who has the lock; raises an `InputError` for a file that holds something else."""
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
def errors_in_words(path: Path) -> Iterator[None]:
    """Turn errors of the disk into sentences that say what to do.

    Errors that have nothing to do with locks, such as that of a full disk, stay as they are.
    """
    try:
        yield
    except OSError as error:
        closed = f"{path.parent} cannot be written ({error.strerror}); name a folder that can."
        lockless = (
            f"the disk of {path.parent} has no locks ({error.strerror}), so that two "
            "processes could spoil each other's files; "
            "mount it with flock, or name a folder on another disk."
        )
        why = {
            **dict.fromkeys(_UNWRITABLE, closed),
            **dict.fromkeys(_WITHOUT_LOCKS, lockless),
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
