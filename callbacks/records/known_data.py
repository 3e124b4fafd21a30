"""A run knows its data: `fingerprint.json` in its directory says what it was trained on, and
nothing else is ever mixed with it.
"""

import json
import re
from pathlib import Path
from typing import Any

from lightning import Callback, LightningModule, Trainer

from core.atomic_io import write_atomically
from core.errors import InputError
from core.read_json import read_json
from datamodules import VoteDataModule
from datamodules.fingerprint import Fingerprint, difference, fingerprint

FILE = "fingerprint.json"
INSTEAD = (
    "put the old one back, give the new data a name of its own (data.name), or delete "
    "{folder} to train it again"
)


class KnownData(Callback):
    """Writes the fingerprint when a run begins, and refuses to go on with, or to judge by, anything
    else.
    """

    changes_training = False

    def __init__(self, options: dict[str, Any], folder: Path):
        """
        Args:
            options: All options that decide the run's result, with their values.
            folder: The run's.
        """
        self.options, self.folder = options, folder

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Compare the data, which is set up before callbacks are."""
        data = trainer.datamodule  # pyright: ignore[reportAttributeAccessIssue]
        write = stage == "fit" and trainer.is_global_zero
        know_data(self.folder, data, self.options, write)


def know_data(
    folder: Path,
    data: VoteDataModule,
    options: dict[str, Any],
    write: bool,
    now: Fingerprint | None = None,
) -> None:
    """Refuse data, or defaults of options, that are not those that a run was trained on; of a run
    that begins, note them where `write` is set.

    `now` is the fingerprint of the data, where it is known already.
    """
    now = now or fingerprint(data, data.training_votes())
    known = read_fingerprint(folder)
    if known is None:
        _check_times(folder, data)
        if write:
            content = json.dumps({"options": options, "data": now}, indent=1, default=str)
            write_atomically(folder / FILE, content + "\n")
        return
    if changed := difference(known["data"], now):
        raise InputError(
            f"{folder.name} cannot be used with this data: {changed}; "
            f"{INSTEAD.format(folder=folder)}."
        )
    if other := _other_option(known["options"], json.loads(json.dumps(options, default=str))):
        name, before, after = other
        raise InputError(
            f"{folder.name} was trained with {name} = {before}, and that is {after} by default "
            f"now; set {name} to {before}, "
            f"give the data a name of its own (data.name), or delete {folder} to train it again."
        )


def read_fingerprint(folder: Path) -> dict[str, Any] | None:
    """The options and data of a run; None where it noted none, as in earlier versions."""
    path = folder / FILE
    content = read_json(path)
    if content is None and not path.exists():
        return None
    if not _is_whole(content):
        raise InputError(
            f"{path} cannot be read, so what this run was trained on is not known; delete "
            f"{folder} to train it again."
        )
    return content


def _is_whole(content: Any) -> bool:
    if not isinstance(content, dict):
        return False
    if not all(isinstance(content.get(name), dict) for name in ("options", "data")):
        return False
    return all(
        isinstance(part, dict) and isinstance(part.get("digest"), str) and _is_time(part)
        for part in content["data"].values()
    )


def _is_time(part: dict[str, Any]) -> bool:
    """Whether the time of a file, where there is one, is that alone: a sentence may put it into a
    command to be typed.
    """
    return "time" not in part or re.fullmatch(r"[\d:TZ-]{1,30}", str(part["time"])) is not None


def check_at_hand(folder: Path, now: Fingerprint, known: dict[str, Any] | None = None) -> None:
    """Refuse a finished run whose votes or items are no longer what the files at hand say.

    `known` is what the run noted of its data, where that was read already.
    """
    known = known or read_fingerprint(folder)
    if known and (changed := difference(known["data"], now)):
        raise InputError(
            f"{folder.name} has results of other data: {changed}; {INSTEAD.format(folder=folder)}."
        )


def _check_times(folder: Path, data: VoteDataModule) -> None:
    """Of a run that noted nothing, as earlier versions did, files must at least be older than what
    they were trained to.
    """
    checkpoints = [folder / "checkpoints" / name for name in ("best.ckpt", "last.ckpt")]
    trained = next((path for path in checkpoints if path.exists()), None)
    if trained is None:
        return
    newer = [path for path in data.files() if path.stat().st_mtime > trained.stat().st_mtime]
    if newer:
        raise InputError(
            f"{newer[0]} is newer than {trained}, which an earlier version trained without a note "
            f"of its data; {INSTEAD.format(folder=folder)}."
        )


def _other_option(before: Any, after: Any, name: str = "") -> tuple[str, Any, Any] | None:
    """The first option that both know of and that has another value now, with both values.

    >>> before, after = {"padding": 4}, {"padding": 5, "flip": True}
    >>> _other_option({"data": {"init_args": before}}, {"data": {"init_args": after}})
    ('data.padding', 4, 5)
    """
    if isinstance(before, dict) and isinstance(after, dict):
        inner = (
            _other_option(before[key], after[key], _dotted(name, key))
            for key in before
            if key in after
        )
        return next((result for result in inner if result), None)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        inner = (_other_option(one, other, name) for one, other in zip(before, after, strict=True))
        return next((result for result in inner if result), None)
    return None if before == after else (name, before, after)


def _dotted(name: str, key: str) -> str:
    return name if key == "init_args" else f"{name}.{key}" if name else key
