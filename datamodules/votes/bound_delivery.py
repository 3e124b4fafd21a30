"""Deliveries tied to votes and a seed: what gives each epoch its targets.

`datamodules.votes.delivery` says which deliveries there are. Here is how each is computed: a whole
epoch, or a block of its items, at once, without a loop over items.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from core.randomness import advanced, generator
from datamodules.votes.row_blocks import row_blocks, rows_at_once
from datamodules.votes.table import VoteTable

LISTED = 1 << 26  # votes that are listed one by one whatever the size of the table: 64 MB


class BoundDelivery(ABC):
    """A delivery tied to votes and a seed: each epoch's targets, and the blending of batches."""

    blends = False  # whether `blend` changes anything

    @abstractmethod
    def targets(self, epoch: int, start: int = 0, stop: int | None = None) -> Tensor:
        """This epoch's targets of the items from `start` up to `stop`, of all unless given: int64
        [n] or float32 [n, K].

        A block's targets are those that the whole epoch has at its place, bit for bit.
        """

    def blend(
        self, inputs: Tensor, targets: Tensor, rows: Tensor, epoch: int
    ) -> tuple[Tensor, Tensor]:
        """Combine the items of one batch, whose rows in the table are `rows`. Only mixup does."""
        return inputs, targets


class ByItem(BoundDelivery):
    """Targets that follow from each item's own votes, so that a block of items needs no others.

    What the targets are looked up in is made of the votes of the items that are asked for. It is
    kept until others are asked for, and once it is made of all items the votes are let go.
    """

    def __init__(self, votes: VoteTable):
        self._votes: VoteTable | None = votes
        self._items, self._made_of = len(votes), range(-1, -1)

    def targets(self, epoch: int, start: int = 0, stop: int | None = None) -> Tensor:
        """Takes the time and memory of these items alone."""
        stop = self._items if stop is None else stop
        if not 0 <= start <= stop <= self._items:
            raise InputError(
                f"a block of items from {start} up to {stop} is not within the {self._items} items "
                f"there are; it must start at 0 or later and stop at {self._items} or before."
            )
        if not self._made_of.start <= start <= stop <= self._made_of.stop:
            assert self._votes is not None
            self._make(self._votes, start, stop)
            self._made_of = range(start, stop)
            if len(self._made_of) == self._items:
                self._votes = None
        first = self._made_of.start
        return self._look_up(epoch, slice(start - first, stop - first), start)

    @abstractmethod
    def _make(self, votes: VoteTable, start: int, stop: int) -> None:
        """Prepare the items from `start` up to `stop`."""

    @abstractmethod
    def _look_up(self, epoch: int, part: slice, start: int) -> Tensor:
        """The targets of a part of what was made, whose first item is `start` in the table."""


class Constant(ByItem):
    """The same targets in every epoch."""

    def __init__(self, votes: VoteTable, targets_of: Callable[[VoteTable], Tensor]):
        super().__init__(votes)
        self._targets_of = targets_of

    def _make(self, votes: VoteTable, start: int, stop: int) -> None:
        self._targets = self._targets_of(votes.block(start, stop))

    def _look_up(self, epoch: int, part: slice, start: int) -> Tensor:
        return self._targets[part]


class Cycle(ByItem):
    """All votes as one flat list, grouped by item and shuffled within each, so that an epoch is a
    single gather: of each item's vote number `epoch`, counted round and round.
    """

    def __init__(self, votes: VoteTable, seed: int):
        if votes.counts is None:
            raise InputError(
                f"{votes.source} has only probabilities, so there are no votes to cycle through; "
                "use StochasticLabelSampling, or set data.votes_per_item to draw votes first."
            )
        super().__init__(votes)
        self._seed = seed

    def _make(self, votes: VoteTable, start: int, stop: int) -> None:
        assert votes.counts is not None
        self._length = votes.counts[start:stop].sum(1, dtype=np.int64)
        self._first = np.cumsum(self._length) - self._length
        kind = np.min_scalar_type(votes.num_classes)
        self._shuffled = np.empty(int(self._length.sum()), kind)
        # one number per vote: those before belong to the votes of earlier items
        rng = advanced(generator(self._seed, "multipass"), votes.votes_before(start))
        step = rows_at_once(64)  # items at a time: the shuffle then needs little beside the votes
        for row in range(start, stop, step):
            counts = votes.counts[row : min(row + step, stop)]
            length = self._length[row - start :][: len(counts)]
            label = all_votes(counts, kind)
            place = np.repeat(np.arange(row, row + len(counts)), length) + rng.random(len(label))
            shuffled = label[np.argsort(place, kind="stable")]
            self._shuffled[self._first[row - start] :][: len(label)] = shuffled

    def _look_up(self, epoch: int, part: slice, start: int) -> Tensor:
        vote = self._first[part] + epoch % self._length[part]
        return torch.from_numpy(self._shuffled[vote].astype(np.int64))


class Draws(ByItem):
    """One uniform number per item chooses one of its votes. They lie in one flat list, grouped by
    item and ordered by class, so that an epoch is a single gather.

    Where there are only probabilities, or so many votes that the list would take more memory than
    probabilities do, a binary search along each item's running sums finds the same labels. They
    stay the same until `every` epochs have passed.
    """

    def __init__(self, votes: VoteTable, seed: int, every: int, order: np.ndarray | None = None):
        """With an `order` of all rows, each item has the votes of the row at its place in it."""
        super().__init__(votes)
        self._seed, self._every, self._order = seed, every, order

    def _make(self, votes: VoteTable, start: int, stop: int) -> None:
        if self._order is None:
            rows = votes.block(start, stop)
        else:
            rows = votes.take(self._order[start:stop])
        self._total = self._listed = None
        if rows.counts is None:
            cumulative = np.cumsum(rows.probs, axis=1)
            # The last step is exactly 1: a uniform number below 1 never reaches a class without
            # votes.
            cumulative /= cumulative[:, -1:]
            self._cumulative = torch.from_numpy(cumulative)
            return
        self._total = rows.counts.sum(1, dtype=np.int64)
        if (length := int(self._total.sum())) <= max(LISTED, 8 * rows.counts.size):
            self._first = np.cumsum(self._total) - self._total
            self._listed = np.empty(length, np.min_scalar_type(rows.num_classes))
            for block in row_blocks(rows.counts):
                label = all_votes(rows.counts[block], self._listed.dtype)
                self._listed[self._first[block][0] :][: len(label)] = label
            return
        most, kinds = self._total.max(), (np.uint8, np.int16, np.int32)
        smallest = next(kind for kind in kinds if most <= np.iinfo(kind).max)
        self._cumulative = torch.from_numpy(np.cumsum(rows.counts, axis=1, dtype=smallest))

    def _look_up(self, epoch: int, part: slice, start: int) -> Tensor:
        rng = generator(self._seed, "label-sampling", epoch // self._every)
        chosen = advanced(rng, start).random(part.stop - part.start)
        if self._total is not None:
            chosen *= self._total[part]  # the number of a vote, once it is cut to a whole number
        if self._listed is not None:
            vote = chosen.astype(np.int64)
            vote += self._first[part]
            return torch.from_numpy(self._listed[vote].astype(np.int64))
        cumulative = self._cumulative[part]
        wanted = torch.from_numpy(chosen)[:, None].to(cumulative.dtype)
        return torch.searchsorted(cumulative, wanted, right=True)[:, 0]


class Mixed(BoundDelivery):
    """Another delivery's targets, blended within each batch together with the inputs."""

    blends = True

    def __init__(self, base: BoundDelivery, classes: int, items: int, alpha: float, seed: int):
        self._base, self._classes, self._items = base, classes, items
        self._alpha, self._seed = alpha, seed
        self._shares: tuple[int, Tensor] = (-1, torch.empty(0))

    def targets(self, epoch: int, start: int = 0, stop: int | None = None) -> Tensor:
        """The base's targets before any blending, as floats [n, K]."""
        targets = self._base.targets(epoch, start, stop)
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


def all_votes(counts: np.ndarray, kind: np.dtype | type) -> np.ndarray:
    """The label of every vote, item by item and class by class, as numbers of the kind given.

    >>> all_votes(np.array([[2, 1], [0, 3]]), np.uint8)
    array([0, 0, 1, 1, 1, 1], dtype=uint8)
    """
    labels = np.arange(counts.shape[1], dtype=kind)
    return np.repeat(np.tile(labels, len(counts)), counts.ravel())


def one_hot(targets: Tensor, classes: int) -> Tensor:
    """Class numbers [N] as float32 rows [N, K] with a single 1.

    >>> one_hot(torch.tensor([1, 0]), classes=3)
    tensor([[0., 1., 0.],
            [1., 0., 0.]])
    """
    return torch.zeros(len(targets), classes).scatter_(1, targets[:, None], 1.0)
