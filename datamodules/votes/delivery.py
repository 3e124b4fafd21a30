"""How annotators' votes reach the loss: each delivery is a pure function of (votes, seed, epoch).

A delivery is a small description that a config can hold. `bind(votes, seed)` turns it into an
object whose `targets(epoch)` gives that epoch's targets for all items at once: integers [N] for
hard deliveries, floats [N, K] for soft ones.

>>> votes = VoteTable(counts=[[2, 1], [0, 4]])
>>> multipass = Multipass().bind(votes, seed=0)
>>> # one vote of three was for class 1
>>> torch.stack([multipass.targets(epoch) for epoch in range(3)]).sum(0)
tensor([1, 3])
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from core.randomness import generator
from datamodules.votes.table import BLOCK, VoteTable


class BoundDelivery(ABC):
    """A delivery tied to votes and a seed."""

    blends = False  # whether `blend` changes anything

    @abstractmethod
    def targets(self, epoch: int) -> Tensor:
        """The targets of every item in this epoch: int64 [N] or float32 [N, K]."""

    def blend(
        self, inputs: Tensor, targets: Tensor, rows: Tensor, epoch: int
    ) -> tuple[Tensor, Tensor]:
        """Combine the items of one batch, whose rows in the table are `rows`. Only mixup does."""
        return inputs, targets


class Delivery(ABC):
    """Base of all deliveries; a config names the class, as in `--data.delivery Multipass`."""

    @abstractmethod
    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        """Tie this delivery to a table and a seed."""


@dataclass(frozen=True)
class SoftLabels(Delivery):
    """The annotator distribution itself, in every epoch."""

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        return _Constant(torch.from_numpy(votes.float_probs()))


@dataclass(frozen=True)
class MajorityVote(Delivery):
    """The most voted class (ties: lowest class number): the usual practice, which discards
    disagreement.
    """

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        return _Constant(torch.from_numpy(votes.majority))


@dataclass(frozen=True)
class LabelSmoothing(Delivery):
    """The majority class with `epsilon` of the mass spread evenly over all classes.

    The papers do not state their epsilon.
    """

    epsilon: float = 0.1

    def __post_init__(self):
        if not 0 <= self.epsilon <= 1:
            raise InputError(
                f"LabelSmoothing's epsilon is {self.epsilon}; it must lie between 0 and 1."
            )

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        one_hot = _one_hot(torch.from_numpy(votes.majority), votes.num_classes)
        return _Constant(one_hot.mul_(1 - self.epsilon).add_(self.epsilon / votes.num_classes))


@dataclass(frozen=True)
class Multipass(Delivery):
    """One observed vote per item and epoch: each item's votes, shuffled once, are cycled through by
    epoch mod their number.
    """

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        return _Cycle(votes, seed)


@dataclass(frozen=True)
class DeterministicControl(Delivery):
    """Multipass in another fixed order: shows whether the order of the votes matters."""

    seed_offset: int = 1000

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        return _Cycle(votes, seed + self.seed_offset)


@dataclass(frozen=True)
class StochasticLabelSampling(Delivery):
    """One label per item, drawn from its distribution anew every `resample_every` epochs (1; larger
    for the staleness probe).
    """

    resample_every: int = 1

    def __post_init__(self):
        if not isinstance(self.resample_every, int) or self.resample_every < 1:
            raise InputError(
                f"{type(self).__name__}'s resample_every is {self.resample_every}; it must be a "
                "whole number of 1 or more."
            )

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        return _Draws(votes, seed, self.resample_every)


@dataclass(frozen=True)
class ShuffledSLS(StochasticLabelSampling):
    """Sampling after one permutation of the distributions across items: keeps the statistics,
    breaks the match.
    """

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        order = generator(seed, "shuffled-sls").permutation(len(votes))
        return _Draws(votes.take(order), seed, self.resample_every)


@dataclass(frozen=True)
class Mixup(Delivery):
    """Convex combinations of two items of a batch, inputs and targets alike, on top of any other
    delivery.

    The papers state neither alpha nor the base: 1.0 is the original authors' choice for CIFAR, the
    majority vote their setting.
    """

    base: Delivery = field(default_factory=MajorityVote)
    alpha: float = 1.0

    def __post_init__(self):
        if not 0 < self.alpha < float("inf"):
            raise InputError(f"Mixup's alpha is {self.alpha}; it must be above 0 and finite.")

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        return _Mixed(self.base.bind(votes, seed), votes.num_classes, len(votes), self.alpha, seed)


class _Constant(BoundDelivery):
    def __init__(self, targets: Tensor):
        self._targets = targets

    def targets(self, epoch: int) -> Tensor:
        return self._targets


class _Cycle(BoundDelivery):
    """All votes as one flat list, grouped by item and shuffled within each, so that an epoch is a
    single gather.
    """

    def __init__(self, votes: VoteTable, seed: int):
        if votes.counts is None:
            raise InputError(
                f"{votes.source} has only probabilities, so there are no votes to cycle through; "
                "use StochasticLabelSampling, or set data.votes_per_item to draw votes first."
            )
        items, classes = votes.counts.shape
        self._length = votes.counts.sum(1, dtype=np.int64)
        self._first = np.cumsum(self._length) - self._length
        rng, labels = (
            generator(seed, "multipass"),
            np.arange(classes, dtype=np.min_scalar_type(classes)),
        )
        self._votes = np.empty(int(self._length.sum()), labels.dtype)
        for start in range(
            0, items, BLOCK // 64
        ):  # so that what the shuffle needs for a while is small beside the votes
            counts = votes.counts[start : start + BLOCK // 64]
            label, length = (
                np.repeat(np.tile(labels, len(counts)), counts.ravel()),
                self._length[start : start + len(counts)],
            )
            place = np.repeat(np.arange(start, start + len(counts)), length) + rng.random(
                len(label)
            )
            self._votes[self._first[start] :][: len(label)] = label[
                np.argsort(place, kind="stable")
            ]

    def targets(self, epoch: int) -> Tensor:
        return torch.from_numpy(self._votes[self._first + epoch % self._length].astype(np.int64))


class _Draws(BoundDelivery):
    """Inverse-CDF sampling: one uniform number per item and a binary search along its classes.

    Where there are votes, the number chooses one of them, and the search runs along their running
    totals: whole numbers, which take an eighth to a half of the memory that probabilities do.
    """

    def __init__(self, votes: VoteTable, seed: int, every: int):
        self._seed, self._every, self._total = seed, every, None
        if votes.counts is None:
            cumulative = np.cumsum(votes.probs, axis=1)
            # the last step is exactly 1, so that a uniform number below 1 never reaches a class
            # without votes
            cumulative /= cumulative[:, -1:]
        else:
            self._total = votes.counts.sum(1, dtype=np.int64)
            smallest = next(
                kind
                for kind in (np.uint8, np.int16, np.int32)
                if self._total.max() <= np.iinfo(kind).max
            )
            cumulative = np.cumsum(votes.counts, axis=1, dtype=smallest)
        self._cumulative = torch.from_numpy(cumulative)

    def targets(self, epoch: int) -> Tensor:
        chosen = generator(self._seed, "label-sampling", epoch // self._every).random(
            len(self._cumulative)
        )
        if self._total is not None:
            chosen *= self._total  # the number of a vote, once it is cut to a whole number
        wanted = torch.from_numpy(chosen)[:, None].to(self._cumulative.dtype)
        return torch.searchsorted(self._cumulative, wanted, right=True)[:, 0]


class _Mixed(BoundDelivery):
    blends = True

    def __init__(self, base: BoundDelivery, classes: int, items: int, alpha: float, seed: int):
        self._base, self._classes, self._items, self._alpha, self._seed = (
            base,
            classes,
            items,
            alpha,
            seed,
        )
        self._shares: tuple[int, Tensor] = (-1, torch.empty(0))

    def targets(self, epoch: int) -> Tensor:
        targets = self._base.targets(epoch)
        return targets if targets.is_floating_point() else _one_hot(targets, self._classes)

    def blend(
        self, inputs: Tensor, targets: Tensor, rows: Tensor, epoch: int
    ) -> tuple[Tensor, Tensor]:
        """Mix each item with its neighbour in the batch (whose order is already random), one share
        for the whole batch.

        The share is looked up by the batch's first item, so it is a function of (seed, epoch) and
        the batch alone.
        """
        inputs, targets = self._base.blend(inputs, targets, rows, epoch)
        if self._shares[0] != epoch:
            shares = generator(self._seed, "mixup", epoch).beta(
                self._alpha, self._alpha, self._items
            )
            self._shares = epoch, torch.from_numpy(shares).float().to(inputs.device)
        share = self._shares[1][rows[0]].to(inputs.dtype)
        return torch.lerp(inputs.roll(1, 0), inputs, share), torch.lerp(
            targets.roll(1, 0), targets, share.to(targets.dtype)
        )


def _one_hot(targets: Tensor, classes: int) -> Tensor:
    return torch.zeros(len(targets), classes).scatter_(1, targets[:, None], 1.0)
