"""What follows a training epoch by epoch: one object, called from Lightning's hooks where a run
trains alone and by its member where it trains in a pack.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from core.errors import InputError
from lightning_modules.classifier import Prediction
from metrics import mean_metrics

Predictions = Callable[[str], Prediction]  # of a split's items, which may come in any order
Scores = Callable[[str], Mapping[str, float]]  # of a split's items, by names such as `kl`


class EndedEpoch:
    """An epoch that has just ended, as a follower may ask about it.

    What is asked for is computed then; what nobody asks for costs nothing.
    """

    def __init__(
        self, number: int, follower: "EpochFollower", predictions: Predictions, scores: Scores
    ):
        self.number = number
        self._follower, self._predictions, self._scores = follower, predictions, scores

    def predictions(self, split: str) -> Prediction:
        """What the model, in eval mode, says of a split's items without augmentation."""
        return self._predictions(self._declared(split))

    def scores(self, split: str) -> Mapping[str, float]:
        """The mean scores of these predictions: those that validation has, by the same names."""
        return self._scores(self._declared(split))

    def _declared(self, split: str) -> str:
        if split not in self._follower.splits:
            raise InputError(
                f"{type(self._follower).__name__} asks for {split} items at the end of an epoch, "
                "and its `splits` do not name them; add them there."
            )
        return split


class EpochFollower:
    """Follows one training; override what is needed.

    What is returned becomes columns of `history.json`. Those of a validation are named `val/…` and
    those of an epoch's end `train/…` or `test/…`. In a DDP run every rank calls these methods with
    the same predictions, those of all ranks, and the first alone should write files.

    >>> class Confidence(EpochFollower):
    ...     splits = ("train",)
    ...     def after_epoch(self, epoch):
    ...         probs = epoch.predictions("train").probs
    ...         return {"train/confidence": probs.amax(-1).mean()}
    >>> import torch
    >>> one_item = Prediction(torch.tensor([[0.75, 0.25]]), torch.ones(1, 2), torch.tensor([0]))
    >>> columns_of_epoch(Confidence(), 0, lambda split: one_item, lambda split: {})
    {'train/confidence': 0.75}
    """

    splits: tuple[str, ...] = ()  # whose items `after_epoch` asks about: train, val, test

    def after_validation(self, prediction: Prediction) -> Mapping[str, Any]:
        """Columns from the predictions of a validation, of which an epoch may have none or many;
        the last one's are kept.
        """
        return {}

    def after_epoch(self, epoch: EndedEpoch) -> Mapping[str, Any]:
        """Columns from an epoch that has ended; it may also write files."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """What the next epochs depend on, as plain data and tensors; it is taken between epochs."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""

    def copy_record(self, folder: Path, epochs: int) -> None:
        """Give a run of only the first epochs, which has no follower of its own, the files that it
        would have.
        """

    @property
    def follows_validation(self) -> bool:
        """Whether the predictions of validations are to be collected for it."""
        return type(self).after_validation is not EpochFollower.after_validation


def columns_of_validation(follower: EpochFollower, prediction: Prediction) -> dict[str, float]:
    """What a follower makes of a validation."""
    return _checked(follower, follower.after_validation(prediction), ("val/",))


def columns_of_epoch(
    follower: EpochFollower, number: int, predictions: Predictions, scores: Scores
) -> dict[str, float]:
    """What a follower makes of an epoch that has ended."""
    columns = follower.after_epoch(EndedEpoch(number, follower, predictions, scores))
    return _checked(follower, columns, ("train/", "test/"))


def _checked(
    follower: EpochFollower, columns: Mapping[str, Any], kinds: tuple[str, ...]
) -> dict[str, float]:
    """The columns as numbers; refused, where their names would be lost or change a training."""
    for name in columns:
        if not name.startswith(kinds) or name in _taken():
            raise InputError(
                f"{type(follower).__name__} names a column of the history {name}; here it must "
                f"begin with {' or '.join(kinds)} and be none of the training's own."
            )
    return {name: float(value) for name, value in columns.items()}


@cache
def _taken() -> frozenset[str]:
    """The scores that best weights, schedules and early stopping are chosen by."""
    return frozenset({"train/loss", "val/loss", *map(str, mean_metrics("val/").keys())})
