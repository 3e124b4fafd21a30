"""What the best constant prediction scores, and how floors and ceilings are scored."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from core.errors import InputError
from metrics.registry import Score, by_function, values_of

LEAST_ITEMS = 3
UNSEEN = 0.5  # of an item: what a class is given that no training item has votes for


def score_floors(
    train_probs: np.ndarray, probs: np.ndarray, scores: Sequence[Score]
) -> dict[str, float | None]:
    """What the best constant prediction out of training items scores on these, by name; None where
    a score has no floor.

    >>> from metrics import registered
    >>> train, test = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.5, 0.5]])
    >>> round(score_floors(train, test, [registered()["soft_nll"]])["soft_nll"], 3)  # 0.8 and 0.2
    0.916
    """
    values: dict[str, float] = {}
    for kind, shares in best_constants(train_probs, scores).items():
        chosen = [score for score in scores if score.floor == kind]
        said = score_values(chosen, np.broadcast_to(shares, probs.shape), probs)
        values |= {score.name: float(value) for score, value in zip(chosen, said, strict=True)}
    fixed: dict[Any, float] = {"zero": 0.0, "half": 0.5}
    values |= {score.name: fixed[score.floor] for score in scores if score.floor in fixed}
    return {
        score.name: value
        if (value := values.get(score.name)) is not None and np.isfinite(value)
        else None
        for score in scores
    }


def best_constants(train_probs: np.ndarray, scores: Sequence[Score] = ()) -> dict[Any, np.ndarray]:
    """The predictions [K] of every item that floors are made of, by `Score.floor`: the mean
    distribution, how often each class is the majority, and what some of these scores have of their
    own.

    A class without training votes is given half an item's: a constant that rules it out would
    score hundreds of nats as soon as one test item has a vote for it.

    >>> best_constants(np.array([[0.5, 0.5], [1.0, 0.0]]))["mean"]
    array([0.75, 0.25])
    """
    items, classes = train_probs.shape
    majority = np.bincount(train_probs.argmax(1), minlength=classes) / items
    own = {score.floor: score.floor(train_probs) for score in scores if callable(score.floor)}
    shared = {"mean": train_probs.mean(0), "majority": majority}
    return {kind: _possible(shares, items) for kind, shares in shared.items()} | own


def _possible(shares: np.ndarray, items: int) -> np.ndarray:
    given = np.where(shares == 0, UNSEEN / items, shares)
    return given / given.sum()


def score_values(scores: Sequence[Score], probs: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """Each score of predictions against votes; NaN where it is not defined."""
    model = torch.from_numpy(probs if probs.flags.writeable else probs.copy())
    annotators = torch.from_numpy(votes)
    values: dict[str, torch.Tensor] = {}
    for group in by_function(scores):
        values |= values_of(group, model, annotators)
    return np.array([float(values[score.name]) for score in scores])


def vote_shares(counts: np.ndarray) -> np.ndarray:
    """Each item's votes as a distribution."""
    return counts / counts.sum(1, keepdims=True, dtype=np.int64)


def check_items(items: int, what: str) -> None:
    """Refuse so few items that nothing can be said of what a score is worth."""
    if items < LEAST_ITEMS:
        raise InputError(
            f"{items} {what}; what a score is worth cannot be said of fewer than {LEAST_ITEMS}."
        )
