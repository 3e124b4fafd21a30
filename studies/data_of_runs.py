"""The data that finished runs were trained on, for parts of a report that look at items and votes themselves."""

from typing import Any

from datamodules import VoteDataModule
from studies.build import build_data, class_of

HOW = (
    "batch_size",
    "num_workers",
)  # how items are loaded, not which ones they are; how they are labelled in training is `VoteDataModule.binding`


def data_key(config: dict[str, Any]) -> str:
    """Equal for runs whose items, votes and splits are the same.

    >>> one, other = ({"data": {"class_path": "datamodules.Digits", "init_args": {"seed": 0, "batch_size": size}}} for size in (8, 16))
    >>> data_key(one) == data_key(other)
    True
    """
    arguments, free = config["data"].get("init_args", {}), {*HOW, *class_of(config["data"]).binding}  # pyright: ignore[reportAttributeAccessIssue]
    return repr([config["data"]["class_path"], {name: value for name, value in arguments.items() if name not in free}])


class DataOfRuns:
    """Each dataset is loaded once, when it is first asked for. Where its files are not here, that raises their InputError."""

    def __init__(self):
        self._loaded: dict[str, VoteDataModule] = {}

    def of(self, config: dict[str, Any]) -> VoteDataModule:
        key = data_key(config)
        if key not in self._loaded:
            self._loaded[key] = build_data(config)
        return self._loaded[key]
