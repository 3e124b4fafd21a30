"""Deliveries tied to votes and a seed: what gives each epoch its targets.

`datamodules.votes.delivery` says which deliveries there are. Here is how each is computed: a whole
epoch at once, without a loop over items.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from core.randomness import generator
from datamodules.votes.table import BLOCK, VoteTable


class BoundDelivery(ABC):
    """A delivery tied to votes and a seed: each epoch's targets, and the blending of batches."""

    blends = False  # whether `blend` changes anything

    @abstractmethod
    def targets(self, epoch: int) -> Tensor:
        """The targets of every item in this epoch: int64 [N] or float32 [N, K]."""

    def blend(
        self, inputs: Tensor, targets: Tensor, rows: Tensor, epoch: int
    ) -> tuple[Tensor, Tensor]:
        """Combine the items of one batch, whose rows in the table are `rows`. Only mixup does."""
        return inputs, targets


class Constant(BoundDelivery):
    """The same targets in every epoch."""

    def __init__(self, targets: Tensor):
        self._targets = targets

    def targets(self, epoch: int) -> Tensor:
        """The targets it was made with, whatever the epoch."""
        return self._targets


class Cycle(BoundDelivery):
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
        labels = np.arange(classes, dtype=np.min_scalar_type(classes))
        self._votes = np.empty(int(self._length.sum()), labels.dtype)
        rng = generator(seed, "multipass")
        step = BLOCK // 64  # items at a time: the shuffle then needs little beside the votes
        for start in range(0, items, step):
            counts = votes.counts[start : start + step]
            row = np.arange(start, start + len(counts))
            label = np.repeat(np.tile(labels, len(counts)), counts.ravel())
            place = np.repeat(row, self._length[row]) + rng.random(len(label))
            shuffled = label[np.argsort(place, kind="stable")]
            self._votes[self._first[start] :][: len(label)] = shuffled

    def targets(self, epoch: int) -> Tensor:
        """Each item's vote number `epoch`, counted round and round."""
        return torch.from_numpy(self._votes[self._first + epoch % self._length].astype(np.int64))


class Draws(BoundDelivery):
    """Inverse-CDF sampling: one uniform number per item and a binary search along its classes.

    Where there are votes, the number chooses one of them, and the search runs along their running
    totals: whole numbers, which take an eighth to a half of the memory that probabilities do.
    """

    def __init__(self, votes: VoteTable, seed: int, every: int):
        self._seed, self._every, self._total = seed, every, None
        if votes.counts is None:
            cumulative = np.cumsum(votes.probs, axis=1)
            # The last step is exactly 1: a uniform number below 1 never reaches a class without
            # votes.
            cumulative /= cumulative[:, -1:]
        else:
            self._total = votes.counts.sum(1, dtype=np.int64)
            most, kinds = self._total.max(), (np.uint8, np.int16, np.int32)
            smallest = next(kind for kind in kinds if most <= np.iinfo(kind).max)
            cumulative = np.cumsum(votes.counts, axis=1, dtype=smallest)
        self._cumulative = torch.from_numpy(cumulative)

    def targets(self, epoch: int) -> Tensor:
        """One label per item; the same ones until `every` epochs have passed."""
        rng = generator(self._seed, "label-sampling", epoch // self._every)
        chosen = rng.random(len(self._cumulative))
        if self._total is not None:
            chosen *= self._total  # the number of a vote, once it is cut to a whole number
        wanted = torch.from_numpy(chosen)[:, None].to(self._cumulative.dtype)
        return torch.searchsorted(self._cumulative, wanted, right=True)[:, 0]


class Mixed(BoundDelivery):
    """Another delivery's targets, blended within each batch together with the inputs."""

    blends = True

    def __init__(self, base: BoundDelivery, classes: int, items: int, alpha: float, seed: int):
        self._base, self._classes, self._items = base, classes, items
        self._alpha, self._seed = alpha, seed
        self._shares: tuple[int, Tensor] = (-1, torch.empty(0))

    def targets(self, epoch: int) -> Tensor:
        """The base's targets before any blending, as floats [N, K]."""
        targets = self._base.targets(epoch)
        return targets if targets.is_floating_point() else one_hot(targets, self._classes)

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
            rng = generator(self._seed, "mixup", epoch)
            shares = rng.beta(self._alpha, self._alpha, self._items)
            self._shares = epoch, torch.from_numpy(shares).float().to(inputs.device)
        # as a row of one: a device would be waited for to look up a single number
        share = self._shares[1][rows[:1]].to(inputs.dtype)
        mixed_targets = torch.lerp(targets.roll(1, 0), targets, share.to(targets.dtype))
        return torch.lerp(inputs.roll(1, 0), inputs, share), mixed_targets


def one_hot(targets: Tensor, classes: int) -> Tensor:
    """Class numbers [N] as float32 rows [N, K] with a single 1.

    >>> one_hot(torch.tensor([1, 0]), classes=3)
    tensor([[0., 1., 0.],
            [1., 0., 0.]])
    """
    return torch.zeros(len(targets), classes).scatter_(1, targets[:, None], 1.0)
