"""Every epoch scored on training and test items as well, for curves: nothing is ever chosen by
them.
"""

from typing import Literal

import numpy as np
import torch
from lightning import LightningModule, Trainer

from callbacks.history import read_history, training_pauses_to_validate
from callbacks.probe import Probe, ProbeResult
from core.errors import InputError
from core.ranks import from_first_rank
from datamodules import VoteDataModule
from lightning_modules import AnnotatorClassifier
from lightning_modules.preserve_state import preserve_state
from metrics import mean_metrics

ITEMS = 512  # of one pass: there is no gradient, so more than a training batch fits


class EpochScores(Probe):
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
        self._validated = -1  # the last epoch with a validation

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if training_pauses_to_validate(trainer):
            self._validated = trainer.current_epoch

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert isinstance(pl_module, AnnotatorClassifier)
        data: VoteDataModule = trainer.datamodule  # pyright: ignore[reportAttributeAccessIssue]
        for split in self.splits:
            if self._validated == trainer.current_epoch and np.array_equal(
                data.rows(split), data.rows("val")
            ):
                names = [str(name) for name in mean_metrics("").keys()]  # noqa: SIM118
                scores = {
                    f"{split}/{name}": trainer.callback_metrics[f"val/{name}"] for name in names
                }
            else:
                scores = split_scores(pl_module, data, split)
            pl_module.log_dict(scores, sync_dist=True)

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


def split_scores(
    classifier: AnnotatorClassifier, data: VoteDataModule, split: str
) -> dict[str, torch.Tensor]:
    """Mean scores of a classifier on one split, over all ranks, by names such as `train/kl`."""
    metrics = mean_metrics(f"{split}/").to(classifier.device)
    with preserve_state(classifier), torch.no_grad():
        for batch in data.evaluation_batches(data.rows(split), classifier.device, ITEMS):
            prediction = classifier.predict(batch)
            metrics.update(prediction.probs, prediction.target_probs)
    return metrics.compute()
