"""The data that finished runs were trained on, for parts of a report that look at items and votes
themselves.
"""

from pathlib import Path
from typing import Any

import numpy as np

from core.errors import InputError
from datamodules import VoteDataModule
from experiment.build import build_data, class_of

# how items are loaded, not which ones they are; how they are labelled in training is
# `VoteDataModule.pack_axes`
HOW = ("batch_size", "num_workers")


def data_key(config: dict[str, Any]) -> str:
    """Equal for runs whose items, votes and splits are the same.

    >>> small, large = ({"seed": 0, "batch_size": size} for size in (8, 16))
    >>> one = {"data": {"class_path": "datamodules.Digits", "init_args": small}}
    >>> other = {"data": {"class_path": "datamodules.Digits", "init_args": large}}
    >>> data_key(one) == data_key(other)
    True
    """
    data = config["data"]
    free = {*HOW, *class_of(data).pack_axes}  # pyright: ignore[reportAttributeAccessIssue]
    arguments = data.get("init_args", {})
    fixed = {name: value for name, value in arguments.items() if name not in free}
    return repr([data["class_path"], fixed])


def check_of_data(
    items: np.ndarray, classes: int | None, data: VoteDataModule, folder: Path
) -> None:
    """Refuse what a run's folder holds if it is not of this data: items that there are not, or
    other classes.
    """
    if len(items) and items.max() >= len(data.annotator_votes):
        raise InputError(
            f"{folder} holds item {items.max()}, but its data has {len(data.annotator_votes)} "
            "items; test this run, and predict, again."
        )
    if classes is not None and classes != data.num_classes:
        raise InputError(
            f"{folder} holds predictions of {classes} classes, but its data has "
            f"{data.num_classes}; run predict again."
        )


class DataOfRuns:
    """Each dataset is loaded once, when it is first asked for.

    Where its files are not here, that raises their InputError.
    """

    def __init__(self):
        self._loaded: dict[str, VoteDataModule] = {}

    def of(self, config: dict[str, Any]) -> VoteDataModule:
        """The data of a run's config, set up."""
        key = data_key(config)
        if key not in self._loaded:
            self._loaded[key] = build_data(config)
        return self._loaded[key]
