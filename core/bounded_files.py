"""Files that are read whole: regular ones, of a size that somebody can mean.

A device or a pipe would fill memory, or be waited for without end.
"""

import os
from pathlib import Path


class Unreadable(ValueError):
    """Why a file is not read; a clause of a sentence."""


def read_bounded(path: Path, most: int) -> str:
    """The text of a regular file of at most so many bytes.

    >>> read_bounded(Path("/dev/zero"), most=100)
    Traceback (most recent call last):
    core.bounded_files.Unreadable: it is a device or a pipe
    """
    if is_endless(path):
        raise Unreadable("it is a device or a pipe")
    with open(path, "rb", opener=_without_waiting) as stream:
        content = stream.read(most + 1) or b""
    if len(content) > most:
        raise Unreadable(f"it has more than {most:,} bytes")
    return content.decode()


def is_endless(path: Path) -> bool:
    """Whether there is something at a path that is neither a file nor a folder."""
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except (OSError, ValueError):  # no path at all: too long, or with a NUL
        return False


def _without_waiting(path: str, flags: int) -> int:
    # some files of the system are waited for like pipes
    return os.open(path, flags | os.O_NONBLOCK)
