"""Files that appear whole or not at all, and folders that one process at a time fills."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, content: str | bytes, before: Path | None = None) -> None:
    """All or nothing: a reader never sees half a file, whenever the writer is killed. What was there is kept as `before`, if that is given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(partial, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        if before and path.exists():
            os.replace(path, before)  # killed here, a reader finds it there
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def remove_rests(folder: Path, names: str = "*") -> None:
    """Remove what processes that were killed while writing have left in a folder, or of some files in it; to be called while nobody writes there."""
    for rest in folder.rglob(f"{names}.part"):
        rest.unlink(missing_ok=True)


@contextmanager
def only_one(place: Path, does: str) -> Iterator[None]:
    """Hold a folder against other processes; the lock ends with the process, however it ends. `does` says what whoever has to wait waits for."""
    place.mkdir(parents=True, exist_ok=True)
    with open(place / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another process {does} in {place}; waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        for rest in place.rglob("*.part"):  # of a process that was killed while writing
            rest.unlink()
        yield
