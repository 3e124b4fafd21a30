"""Several models as one: the mean of their predictions, and its entropy in two parts.

The entropy of the mean is the members' own, on average (*expected entropy*: what each of them is
unsure of), plus how far they are from each other (*mutual information* of class and member, 0 where
all say the same). The second is what deep ensembles call epistemic or model uncertainty
(Lakshminarayanan et al. 2017, arXiv:1612.01474; Depeweg et al. 2018, arXiv:1710.07283).

Members are judged on items that they were not trained on. Where each of them has a test split of
its own, an item's mean is over the members that tested it, and items that one member alone tested
are left out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from metrics import functional, per_item
from metrics.registry import score_of

LEAST_ITEMS = 3


class Member(NamedTuple):
    """What one model says of its test items."""

    name: str  # for messages
    items: np.ndarray  # their numbers, each once
    probs: np.ndarray  # [n, K]
    annotators: np.ndarray  # [n, K]: what people say of the same


@dataclass(frozen=True)
class Ensemble:
    """The mean prediction of several models, item by item."""

    members: int
    left_out: int  # items that one member alone tested
    items: np.ndarray = field(repr=False)  # in order: those that two members or more tested
    tested: np.ndarray = field(repr=False)  # by how many members each was
    annotators: Tensor = field(repr=False)  # [N, K]
    said: Tensor = field(repr=False)  # [sum of tested, K]: by every member of the first item, …

    @cached_property
    def probs(self) -> Tensor:
        """The mean prediction [N, K]."""
        return self._mean(self.said)

    @property
    def entropy(self) -> Tensor:
        """Of the mean prediction, in nats: the sum of the two parts."""
        return per_item.entropy(self.probs)

    @property
    def expected_entropy(self) -> Tensor:
        """The mean over members of the entropy of what each says, in nats."""
        return self._mean(per_item.entropy(self.said)[:, None])[:, 0]

    @property
    def mutual_information(self) -> Tensor:
        """How far members are from each other, in nats; below 0 it could only be by rounding."""
        return (self.entropy - self.expected_entropy).clamp_min(0)

    @property
    def whole(self) -> bool:
        """Whether all members tested the same items."""
        return not self.left_out and bool((self.tested == self.members).all())

    def score(self, metric: str) -> float:
        """A score of the mean prediction; NaN where there is none of that name, or where it is not
        defined.
        """
        return _score(metric, self.probs, self.annotators)

    def alone(self, metric: str) -> float:
        """The same score of single members on these very items, as a mean: each item is judged by
        one of the members that tested it, and they take turns.

        Where all members tested the same items, it is the mean over members.
        """
        first = np.cumsum(self.tested) - self.tested
        turns = (first + turn % self.tested for turn in range(self.tested.max()))
        values = [_score(metric, self.said[torch.from_numpy(t)], self.annotators) for t in turns]
        return math.fsum(values) / len(values)

    def correlations(self, kind: functional.Kind) -> dict[str, float]:
        """Of the entropy and of both of its parts with the annotators' entropy, over items; NaN
        where one of the two is the same for all.
        """
        people = per_item.entropy(self.annotators)
        return {
            name: float(functional.correlation(getattr(self, name), people, kind))
            for name in ("entropy", "expected_entropy", "mutual_information")
        }

    def _mean(self, values: Tensor) -> Tensor:
        """Over the members of each item."""
        first = np.cumsum(self.tested) - self.tested
        sums = np.add.reduceat(values.numpy(), first, axis=0, dtype=np.float64)
        return torch.from_numpy(sums / self.tested[:, None])


def ensemble_of(members: Sequence[Member]) -> Ensemble:
    """The members as one model, on the items that two of them or more tested.

    >>> people = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> said = {"a": np.array([[1.0, 0.0]] * 3), "b": np.array([[0.0, 1.0]] * 3)}
    >>> both = ensemble_of([Member(name, np.arange(3), p, people) for name, p in said.items()])
    >>> both.expected_entropy.tolist(), both.mutual_information.exp().tolist()
    ([0.0, 0.0, 0.0], [2.0, 2.0, 2.0])
    """
    classes = sorted({member.probs.shape[1] for member in members})
    if len(members) < 2 or len(classes) > 1:
        raise InputError(
            f"there are {len(members)} models of {' and '.join(map(str, classes)) or 'no'} "
            "classes; an ensemble takes two or more, of the same classes."
        )
    every = np.concatenate([member.items for member in members])
    order = np.argsort(every, kind="stable")
    items, first, tested = np.unique(every[order], return_index=True, return_counts=True)
    said, people = (
        np.concatenate(tables)[order]
        for tables in zip(*((m.probs, m.annotators) for m in members), strict=True)
    )
    annotators = people[first]
    other = np.flatnonzero((people != np.repeat(annotators, tested, axis=0)).any(1))
    if len(other):
        names = np.repeat([m.name for m in members], [len(m.items) for m in members])[order]
        raise InputError(
            f"{names[other[0]]} has other votes of item {every[order][other[0]]} "
            "than another seed; an ensemble is of models of the same items."
        )
    kept = tested > 1
    if kept.sum() < LEAST_ITEMS:
        raise InputError(
            f"{kept.sum()} test items are shared by two seeds or more; an ensemble is judged on "
            f"{LEAST_ITEMS} at least."
        )
    rows = torch.from_numpy(said[np.repeat(kept, tested)])
    return Ensemble(
        len(members),
        int((~kept).sum()),
        items[kept],
        tested[kept],
        torch.from_numpy(annotators[kept].astype(np.float64)),
        rows,
    )


def _score(metric: str, probs: Tensor, annotators: Tensor) -> float:
    score, stratum = score_of(metric)
    if stratum:
        unanimous = (annotators > 0).sum(1) == 1
        chosen = unanimous if stratum == "nohlv" else ~unanimous
        probs, annotators = probs[chosen], annotators[chosen]
    if score is None or not len(probs):
        return math.nan
    return float(score.value(probs, annotators))
