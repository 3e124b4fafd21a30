"""Every epoch scored on training and test items as well, for curves: nothing is ever chosen by
them.
"""

from pathlib import Path
from typing import Literal

from callbacks.epochs.epoch_probe import EpochProbe
from callbacks.epochs.split_predictions import split_scores
from callbacks.history import read_history
from callbacks.probe import ProbeResult
from core.errors import InputError
from core.ranks import from_first_rank
from datamodules import VoteDataModule, VoteTable
from lightning_modules import AnnotatorClassifier
from lightning_modules.epoch_follower import EndedEpoch, EpochFollower

__all__ = ["EpochScores", "SplitScores", "split_scores"]


class EpochScores(EpochProbe):
    """At the end of each epoch, scores the model in eval mode against all annotators, on splits
    other than validation.

    The scores go to `history.json` (through `History`) and TensorBoard under the names of
    validation's: `train/kl`, `test/accuracy` and so on. (`train/loss` is another thing: the mean
    over the epoch's steps, on delivered targets, with dropout.) Each split costs a forward pass
    over its items in every epoch; test items that are the validation items cost nothing.
    """

    def __init__(self, splits: list[Literal["train", "test"]] = ["train", "test"]):  # noqa: B006
        """
        Args:
            splits: What to score besides validation, which always is.
        """
        if not splits or len(set(splits)) < len(splits) or not set(splits) <= {"train", "test"}:
            raise InputError(
                f"EpochScores: splits is {splits}; it must be a list of train, test or both, each "
                "once."
            )
        self.splits = tuple(splits)

    @property
    def state_key(self) -> str:
        """One for each list of splits, so that Lightning tells several apart."""
        return f"{type(self).__qualname__}{list(self.splits)}"

    def follow(self, data: VoteDataModule, labels: VoteTable, folder: Path) -> EpochFollower:
        """What gives each epoch's scores of these splits."""
        return SplitScores(self.splits)

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """Nothing, after a test; but say so where fit was run without these scores."""
        epochs = from_first_rank(read_history(self.folder) if self.folder else None) or [{}]
        absent = [split for split in self.splits if f"{split}/kl" not in epochs[-1]]
        if not absent:
            return ProbeResult()
        message = (
            f"EpochScores: history.json holds no scores on {' and '.join(absent)} items, "
            "because fit was run without EpochScores."
        )
        return ProbeResult(notes=[message])


class SplitScores(EpochFollower):
    """Each epoch's mean scores on some splits, as columns such as `train/kl`."""

    def __init__(self, splits: tuple[str, ...]):
        self.splits = splits

    def after_epoch(self, epoch: EndedEpoch) -> dict[str, float]:
        """All scores of all splits."""
        return {
            f"{split}/{name}": value
            for split in self.splits
            for name, value in epoch.scores(split).items()
        }
