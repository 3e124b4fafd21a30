"""A member of a pack: an ordinary classifier with its data, schedule and stopping rule, and what
becomes of it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau

from lightning_modules.classifier import AnnotatorClassifier
from lightning_modules.epoch_follower import (
    EpochFollower,
    Predictions,
    Scores,
    columns_of_epoch,
    columns_of_validation,
)
from lightning_modules.schedules import CosineToEnd

# Of a member, between epochs
KEPT = (
    "best_score",
    "best_epoch",
    "best_state",
    "at_stop",
    "history",
    "last_state",
    "failed",
    "rate",
)


@dataclass
class EarlyStopping:
    """Stop after `patience` epochs in a row without an improvement by more than `min_delta`, as
    Lightning's callback does.
    """

    patience: int
    min_delta: float = 0.0
    monitor: str = "val/loss"
    best: float = math.inf
    waited: int = 0

    def note(self, score: float) -> None:
        """Count an epoch."""
        improved = score + abs(self.min_delta) < self.best
        self.best, self.waited = (score, 0) if improved else (self.best, self.waited + 1)


@dataclass
class Member:
    """One classifier of a pack and what becomes of it."""

    classifier: AnnotatorClassifier
    data: Any  # its datamodule, set up, with inputs in memory; members of one seed share it
    bound: Any  # its own delivery, bound to the datamodule's training votes
    max_epochs: int
    early_stopping: EarlyStopping | None = None
    # also note the best weights after these numbers of epochs: shorter runs are its prefixes
    stops: tuple[int, ...] = ()
    best_score: float = math.inf
    best_epoch: int = -1
    best_state: dict[str, Tensor] = field(default_factory=dict)
    at_stop: dict[int, tuple[int, dict[str, Tensor]]] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    last_state: dict[str, Tensor] = field(default_factory=dict)
    failed: str | None = None
    rate: float = 0.0  # this epoch's learning rate
    # what looks at each of its epochs and adds columns to its history, by the `state_key` of the
    # callback that it is of
    followers: dict[str, EpochFollower] = field(default_factory=dict)

    def __post_init__(self):
        parameter = torch.nn.Parameter(torch.zeros(1))
        # holds the options; the pack does the steps
        self.optimizer = self.classifier.optimizer([parameter])
        self.scheduler = (
            self.classifier.scheduler(self.optimizer) if self.classifier.scheduler else None
        )
        if isinstance(self.scheduler, CosineToEnd):
            self.scheduler.T_max = self.max_epochs
        self.rate = self.optimizer.param_groups[0]["lr"]

    @property
    def finished(self) -> bool:
        """Whether it takes part in no further epoch."""
        return self.failed is not None or len(self.history) >= self.max_epochs or self.stopped_early

    @property
    def stopped_early(self) -> bool:
        """Whether its rule has spoken."""
        return (
            self.early_stopping is not None
            and self.early_stopping.waited >= self.early_stopping.patience
        )

    def state_dict(self) -> dict[str, Any]:
        """All of it that the next epochs depend on, as plain data and tensors."""
        state = {name: getattr(self, name) for name in KEPT}
        stopping = (
            (self.early_stopping.best, self.early_stopping.waited) if self.early_stopping else None
        )
        scheduler = self.scheduler.state_dict() if self.scheduler else None
        followers = {key: follower.state_dict() for key, follower in self.followers.items()}
        return {**state, "stopping": stopping, "scheduler": scheduler, "followers": followers}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        for name in KEPT:
            setattr(self, name, state[name])
        if self.early_stopping:
            self.early_stopping.best, self.early_stopping.waited = state["stopping"]
        if self.scheduler:
            self.scheduler.load_state_dict(state["scheduler"])
            self.optimizer.param_groups[0]["lr"] = self.rate
        states = state["followers"] if "followers" in state else self._earlier_states(state)
        for key, follower in self.followers.items():
            if states.get(key):  # none, where a study got this callback after the pack began
                follower.load_state_dict(states[key])

    def _earlier_states(self, state: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """From a pack that an earlier version began, which kept the last epoch's validation
        predictions, for TrainingDynamics alone.
        """
        if state["before"] is None:
            return {}
        last = {"index": torch.from_numpy(self.data.rows("val")), "probs": state["before"]}
        return {"TrainingDynamics": {"before": last, "now": last}}

    def columns(self, epoch: int, predictions: Predictions, scores: Scores) -> dict[str, float]:
        """Its scores on validation items, and what its followers make of the validation and of the
        epoch that ends with it.
        """
        own = {f"val/{name}": value for name, value in scores("val").items()}
        of_validation: dict[str, float] = {}
        of_epoch: dict[str, float] = {}
        for follower in self.followers.values():
            if follower.follows_validation:
                of_validation |= columns_of_validation(follower, predictions("val"))
        for follower in self.followers.values():
            of_epoch |= columns_of_epoch(follower, epoch, predictions, scores)
        return {**own, **of_epoch, **of_validation}

    def end_epoch(self, scores: dict[str, float], weights: Callable[[], dict[str, Tensor]]) -> None:
        """Take note of an epoch's scores; `weights` gives this member's weights where they are
        needed.
        """
        score = scores[self.classifier.monitor]
        scores = {**scores, "val/loss": score}
        self.history.append({"epoch": len(self.history), "lr": self.rate, **scores})
        if not math.isfinite(score) or not math.isfinite(scores["train/loss"]):
            self.failed = (
                f"its loss was {scores['train/loss']} and its validation score {score} "
                f"in epoch {len(self.history) - 1}"
            )
            return
        if score < self.best_score:
            self.best_score, self.best_epoch, self.best_state = (
                score,
                len(self.history) - 1,
                weights(),
            )
        if len(self.history) in self.stops:
            self.at_stop[len(self.history)] = self.best_epoch, self.best_state
        if self.early_stopping:
            self.early_stopping.note(scores[self.early_stopping.monitor])
        if self.finished:
            self.last_state = weights()
        self.optimizer.step()  # of nothing; schedulers want to see it
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step(score)
        elif self.scheduler:
            self.scheduler.step()
        self.rate = self.optimizer.param_groups[0]["lr"]
