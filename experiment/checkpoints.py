"""Checkpoints that outlive a kill: written all or nothing, checked when they are read, and the one
before the last is kept.
"""

import io
import os
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import TorchCheckpointIO
from lightning.fabric.utilities.rank_zero import rank_zero_only

from core.atomic_io import write_atomically
from core.errors import InputError


class CheckpointFiles(TorchCheckpointIO):
    """How Lightning is to write a run's checkpoints.

    Of `last.ckpt`, from which a run is continued, the one before it stays beside it.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write all or nothing; of `last.ckpt` keep the one before."""
        write_checkpoint(Path(path), checkpoint, keep=Path(path).name == "last.ckpt")

    def load_checkpoint(self, path: str | Path, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """With the names of files where they lie now: Lightning forgets the best score of a run
        whose folder was moved.
        """
        checkpoint = super().load_checkpoint(path, *args, **kwargs)
        folder = os.path.realpath(os.path.dirname(path))
        states = checkpoint.get("callbacks", {})
        for name, state in states.items():
            if isinstance(state, dict) and isinstance(state.get("dirpath"), str):
                states[name] = _with_folder(state, state["dirpath"], folder)
        return checkpoint


def _with_folder(value: Any, old: str, new: str) -> Any:
    """The same state with another folder in all its paths.

    >>> state = {"dirpath": "/a/x", "best_k_models": {"/a/x/best.ckpt": 0.5}, "monitor": "loss"}
    >>> _with_folder(state, "/a/x", "/b/x")
    {'dirpath': '/b/x', 'best_k_models': {'/b/x/best.ckpt': 0.5}, 'monitor': 'loss'}
    """
    if isinstance(value, dict):
        pairs = value.items()
        return {_with_folder(k, old, new): _with_folder(part, old, new) for k, part in pairs}
    if isinstance(value, str) and value.startswith(old):
        return new + value.removeprefix(old)
    return value


def write_checkpoint(path: Path, content: Any, keep: bool) -> None:
    """All or nothing; with `keep`, what was there before becomes `before(path)`."""
    stream = io.BytesIO()
    torch.save(content, stream)
    write_atomically(path, stream.getvalue(), before(path) if keep else None)


def before(path: Path) -> Path:
    """Where the checkpoint before the one at a path is kept.

    >>> before(Path("checkpoints/last.ckpt")).as_posix()
    'checkpoints/last-before.ckpt'
    """
    return path.with_name(f"{path.stem}-before{path.suffix}")


def read_checkpoint(path: Path) -> Any:
    """What a checkpoint holds; nothing in it can run code, and one with a byte too few or another
    byte is refused.

    The checksums are those of its zip format. torch writes them but does not look at them: of 3,000
    files with one bit flipped it loaded 2,851 as if they were whole.
    """
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            altered = archive.testzip()
        if altered is not None:
            raise zipfile.BadZipFile(altered)
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # torch, zipfile and pickle each raise their own
        raise InputError(
            f"{path} is not a checkpoint that can be read; it was cut short, altered, or is "
            "another kind of file."
        ) from error


def newest_whole(path: Path) -> tuple[Path, Any] | None:
    """A file that `write_checkpoint` keeps, or the one before it where that is not whole, with its
    content; None where neither is.

    What is not whole is said, and set aside so that it never takes the place of one that is.
    """
    damaged, result = [], None
    for candidate in (path, before(path)):
        try:
            result = candidate, read_checkpoint(candidate)
            break
        except FileNotFoundError:
            continue
        except InputError:
            damaged.append(candidate)
    if damaged:
        rest = f"continuing from {result[0].name}" if result else "starting from the beginning"
        say(f"{' and '.join(map(str, damaged))} cannot be read (cut short or altered); {rest}.")
        set_aside(*damaged)
    return result


def set_aside(*paths: Path) -> None:
    """Rename to `NAME.damaged`; of several processes of a run, the first does it."""
    for path in paths:
        with suppress(FileNotFoundError):
            os.replace(path, path.with_name(f"{path.name}.damaged"))


@rank_zero_only
def say(sentence: str) -> None:
    """Tell the user, once for all processes."""
    print(sentence, file=sys.stderr)
