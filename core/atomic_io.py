"""Files that appear whole or not at all.

A file is written under a name of ours beside its place, and takes that place when it is on the
disk. If a process is killed in between, its partial file is found by that name and removed.
"""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

SUFFIX = ".plurality-partial"
_PARTIAL = re.compile(r"\..+\.[a-z0-9_]{8}" + re.escape(SUFFIX))
# of disks that keep folders in their own way, and folders that may be written but not read
_UNSYNCED = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)


def write_atomically(
    path: Path, content: str | bytes | IO[bytes], before: Path | None = None
) -> None:
    """Write all or nothing: a reader never sees half a file, whenever the writer is killed.

    With `before`, the file that was there is kept under that name. A link in the file's place is
    replaced by the file; what it leads to is not touched.
    """
    partial = _stage(path, content)
    try:
        if before and path.exists():
            os.replace(path, before)  # killed here, a reader finds it there
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    _sync(path.parent)


@contextmanager
def open_atomically(path: Path) -> Iterator[IO[bytes]]:
    """A stream to write a large file to, which takes its place when all of it is written.

    Where the writing fails, nothing is left of it, and what was there stays.
    """
    with naming(path):
        partial, stream = _new_partial(path)
        try:
            with stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        _sync(path.parent)


def write_together(files: Mapping[Path, bytes | Path]) -> None:
    """Write files that belong together.

    All of them are on the disk before the first takes its place, so only a kill between two renames
    leaves some of them new and some old. They take their places in the order given. A `Path` in
    place of bytes is a file on the same disk, which is moved.
    """
    staged: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            staged[path] = content if isinstance(content, Path) else _stage(path, content)
        for path, partial in staged.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(partial, path)
    finally:
        for partial in staged.values():
            partial.unlink(missing_ok=True)
    for folder in {path.parent for path, content in files.items() if not isinstance(content, Path)}:
        _sync(folder)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give errors of the disk the name that people know a file or folder by.

    Without it they have none, or that of a partial file.
    """
    try:
        yield
    except OSError as error:
        nameless = error.filename is None or str(error.filename).endswith(SUFFIX)
        if error.errno is not None and nameless:
            error.filename = str(path)
        raise


def remove_partial_files(*folders: Path, of: str | None = None) -> None:
    """Remove the partial files of processes that were killed while writing.

    It looks in these folders, not below them; with `of`, for those of the file of that name alone.
    Only the holder of a folder (`folder_lock`) may call it, because a process that still writes
    needs its partial file.
    """
    for folder in folders:
        with suppress(FileNotFoundError, NotADirectoryError):
            for entry in list(os.scandir(folder)):
                wanted = of is None or entry.name.startswith(_start(of))
                if not wanted or not _PARTIAL.fullmatch(entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry)
                elif entry.is_file(follow_symlinks=False):
                    os.unlink(entry)


def _start(name: str) -> str:
    """How the partial file of a name begins; a file's name may have 255 bytes."""
    encoded = os.fsencode(name)
    return f".{name if len(encoded) <= 200 else hashlib.sha256(encoded).hexdigest()}."


def _stage(path: Path, content: str | bytes | IO[bytes]) -> Path:
    """Bring the content to the disk, in a file that is new and nobody else's."""
    with naming(path):
        partial, stream = _new_partial(path)
        try:
            with stream:
                if isinstance(content, str | bytes):
                    stream.write(content.encode() if isinstance(content, str) else content)
                else:
                    shutil.copyfileobj(content, stream)
                stream.flush()
                os.fsync(stream.fileno())
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    return partial


def _new_partial(path: Path) -> tuple[Path, IO[bytes]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{_start(path.name)}{os.urandom(4).hex()}{SUFFIX}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    return partial, os.fdopen(os.open(partial, flags, 0o666), "wb")


def _sync(folder: Path) -> None:
    """Bring a folder's names to the disk, too: one of them now stands for another file."""
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        if error.errno not in _UNSYNCED:
            raise
