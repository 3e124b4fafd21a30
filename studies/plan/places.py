"""Where the relative paths of a study lead, wherever its command is started: to the study's folder,
else to the working folder, else to the project's own files.

The last is for the configs, and the data, that lie beside `cli.py`: a study may name
`configs/digits.yaml` from anywhere. What is found in the working folder stays as it is written, and
what is found nowhere, too: data may be downloaded to there.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.errors import InputError

PROJECT = Path(__file__).resolve().parents[2]


def find(name: str, folder: Path, fits: Callable[[str], bool]) -> str | None:
    """Where a relative path leads for a study in this folder; None where no place has what fits."""
    for place in (folder, Path(), PROJECT):
        path = os.path.join(place, name)
        if fits(path):
            return name if os.path.abspath(path) == os.path.abspath(name) else os.path.abspath(path)
    return None


def find_file(name: str, folder: Path) -> str | None:
    """The same for a file. What is no regular file is the reader's to judge.

    >>> find_file("configs/digits.yaml", Path("/nowhere"))
    'configs/digits.yaml'
    >>> find_file("absent.yaml", Path("/nowhere"))
    """
    return find(name, folder, lambda path: os.path.exists(path) and not os.path.isdir(path))


def absence(folder: Path) -> str:
    """Where a file was looked for, for the sentence that says that it is not there."""
    return (
        f"it is neither in the study's folder {os.path.abspath(folder)}, nor in the working "
        f"folder {os.getcwd()}, nor in the project's {PROJECT}"
    )


def with_configs_found(content: Any, path: Path) -> Any:
    """What a study's file says, with its configs where they are.

    They are found before studies are merged, because each names its own.
    """
    configs = content.get("configs") if isinstance(content, dict) else None
    if isinstance(configs, list):
        content["configs"] = [
            find_file(name, path.parent) or name if isinstance(name, str) else name
            for name in configs
        ]
    return content


def check_configs(configs: list[str], path: Path) -> None:
    """Refuse a study whose configs are nowhere to be found."""
    for name in configs:
        if not os.path.exists(name):
            raise InputError(
                f"{path}: configs name {name}, which is not there: {absence(path.parent)}."
            )


def data_places(data: dict[str, Any], folder: Path) -> dict[str, str]:
    """The folders of a run's data (`root`, `cache`), which are no part of its name, where they are
    not where they are written.

    A dataset whose options name files below `root` (its class lists them in `below_root`) has the
    root that holds one of these; any other the first that holds any. So `data.votes: votes.csv` is
    found beside the study, and the run is named by that word wherever it lies.
    """
    from experiment.build import class_of  # a study is read without what its runs are built of

    arguments = data.get("init_args") or {}
    named = [
        str(arguments[option])
        for option in getattr(class_of(data), "below_root", ())
        if arguments.get(option)
    ]

    def holds_data(root: str) -> bool:
        if not named:
            return holds_files(root)
        return any(os.path.exists(os.path.join(root, name)) for name in named)

    fits = {"root": holds_data, "cache": holds_files}
    result = {}
    for option, fit in fits.items():
        written = arguments.get(option)
        # any folder has itself, which says nothing
        if isinstance(written, str) and (named or os.path.normpath(written) != "."):
            place = find(written, folder, fit)
            if place is not None and place != written:
                result[option] = place
    return result


def holds_files(folder: str) -> bool:
    """Whether there is a file below a folder.

    One that a download was begun for and that holds no more than a lock does not count.
    """
    return any(not file.startswith(".") for _, _, files in os.walk(folder) for file in files)
