"""How training gets to its end: when it is at its best, and how much predictions still move from
epoch to epoch, by stratum.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from callbacks.epochs.dynamics import STRATA, draw_dynamics, dynamics_summary
from callbacks.epochs.epoch_probe import EpochProbe
from callbacks.history import read_history
from callbacks.probe import ProbeResult
from core.ranks import from_first_rank
from datamodules import VoteDataModule
from datamodules.votes.table import VoteTable
from lightning_modules import AnnotatorClassifier, Prediction
from lightning_modules.epoch_follower import EndedEpoch, EpochFollower
from metrics.drift import prediction_drift


class TrainingDynamics(EpochProbe):
    """While training, compares each epoch's validation predictions with those of the epoch before
    it; after a test, sums up `history.json`.

    The divergences are logged as `val/js…`, so `History` keeps them. The predictions that the next
    epoch is compared with are kept in checkpoints.
    """

    def __init__(self, quantile: float = 0.9):
        """
        Args:
            quantile: Items whose entropy reaches it, over the whole table, are of high
                disagreement. The papers do not state their cut.
        """
        self.quantile = quantile

    def follow(self, data: VoteDataModule, labels: VoteTable, folder: Path) -> EpochFollower:
        """What compares each epoch's validation predictions with the last one's."""
        return PredictionDrift(strata_of(data.annotator_votes, self.quantile))

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """The history in a few numbers and a picture."""
        epochs = from_first_rank(read_history(self.folder) if self.folder else None)
        where = f"{self.folder}/history.json" if self.folder else "a history"
        if epochs is None:
            return ProbeResult(
                notes=[
                    f"TrainingDynamics: there is no {where} of this training, so it is not summed "
                    "up; fit writes one."
                ]
            )
        summary = dynamics_summary(epochs)
        if not summary:
            return ProbeResult(
                notes=[
                    f"TrainingDynamics: {where} holds no finite validation score, so this "
                    "training is not summed up."
                ]
            )
        notes = []
        if len(epochs) > 1 and "late_js" not in summary:
            notes = [
                f"TrainingDynamics: {where} holds no divergences between epochs, because fit was "
                "run without TrainingDynamics."
            ]
        crowd = " (simulated annotators)" if data.simulated else ""
        picture = partial(draw_dynamics, epochs, f"{data.name}{crowd}: validation items by epoch")
        return ProbeResult(summary, {"training_dynamics": picture}, notes=notes)


class PredictionDrift(EpochFollower):
    """How far validation predictions moved since the last epoch, as columns such as `val/js_hlv`.

    Of several validations in one epoch each is compared with the last of the epoch before.
    """

    def __init__(self, strata: Mapping[str, Tensor]):
        """
        Args:
            strata: Masks of the whole table, by the names of their columns.
        """
        self.strata = strata
        # the items, by `index`, and their `probs`: of the last epoch, and of this one
        self.before: dict[str, Tensor] = {}
        self.now: dict[str, Tensor] = {}

    def after_validation(self, prediction: Prediction) -> dict[str, float]:
        """The mean divergence in each stratum; none of other items than before."""
        index, probs = prediction.index, prediction.probs.clone()  # of what may be a whole pack's
        self.now = {"index": index, "probs": probs}
        if not self.before or not torch.equal(self.before["index"], index):
            return {}
        strata = {f"val/{name}": mask[index] for name, mask in self.strata.items()}
        return prediction_drift(self.before["probs"], probs, strata)

    def after_epoch(self, epoch: EndedEpoch) -> dict[str, float]:
        """What there is now is what the next epoch is compared with."""
        self.before = self.now
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Both tables of predictions."""
        return {"before": self.before, "now": self.now}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self.before, self.now = state["before"], state["now"]


def strata_of(votes: VoteTable, quantile: float) -> dict[str, Tensor]:
    """All items, those with unanimous votes, those without, and those of high disagreement.

    >>> strata = strata_of(VoteTable(counts=[[4, 0], [3, 1], [2, 2]]), quantile=0.9)
    >>> {name: mask.sum().item() for name, mask in strata.items()}
    {'js': 3, 'js_nohlv': 1, 'js_hlv': 2, 'js_high': 1}
    """
    unanimous, high = (
        torch.from_numpy(votes.unanimous),
        torch.from_numpy(votes.high_disagreement(quantile)),
    )
    return dict(zip(STRATA, (torch.ones_like(unanimous), unanimous, ~unanimous, high), strict=True))
