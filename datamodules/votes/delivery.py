"""How annotators' votes reach the loss: each delivery is a pure function of (votes, seed, epoch).

A delivery is a small description that a config can hold. `bind(votes, seed)` turns it into an
object whose `targets(epoch)` gives that epoch's targets for all items at once: integers [N] for
hard deliveries, floats [N, K] for soft ones. `targets(epoch, start, stop)` gives those of a block
of items alone; docs/scale.md says what that costs.

>>> votes = VoteTable(counts=[[2, 1], [0, 4]])
>>> multipass = Multipass().bind(votes, seed=0)
>>> # one vote of three was for class 1
>>> torch.stack([multipass.targets(epoch) for epoch in range(3)]).sum(0)
tensor([1, 3])
>>> multipass.targets(2, 1, 2).equal(multipass.targets(2)[1:2])
True
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor

from core.errors import InputError
from core.randomness import generator
from datamodules.votes.bound_delivery import BoundDelivery, Constant, Cycle, Draws, Mixed, one_hot
from datamodules.votes.table import VoteTable


class Delivery(ABC):
    """Base of all deliveries; a config names the class, as in `--data.delivery Multipass`."""

    @abstractmethod
    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        """Tie this delivery to a table and a seed."""


@dataclass(frozen=True)
class SoftLabels(Delivery):
    """The annotator distribution itself, in every epoch."""

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        """Targets are the table's probabilities [N, K]; the seed plays no part."""
        return Constant(votes, lambda block: torch.from_numpy(block.float_probs()))


@dataclass(frozen=True)
class MajorityVote(Delivery):
    """The most voted class; of tied classes the one with the lowest number.

    This is the usual practice. It discards disagreement.
    """

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        """Targets are class numbers [N]; the seed plays no part."""
        return Constant(votes, lambda block: torch.from_numpy(block.majority))


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
        """Targets are smoothed rows [N, K]; the seed plays no part."""
        return Constant(votes, self._smoothed)

    def _smoothed(self, votes: VoteTable) -> Tensor:
        targets = one_hot(torch.from_numpy(votes.majority), votes.num_classes)
        return targets.mul_(1 - self.epsilon).add_(self.epsilon / votes.num_classes)


@dataclass(frozen=True)
class Multipass(Delivery):
    """One observed vote per item and epoch.

    Each item's votes are shuffled once and then cycled through, by epoch mod their number.
    """

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        """Raises an `InputError` for a table of probabilities: it has no votes to cycle through."""
        return Cycle(votes, seed)


@dataclass(frozen=True)
class DeterministicControl(Delivery):
    """Multipass in another fixed order: shows whether the order of the votes matters."""

    seed_offset: int = 1000

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        """As `Multipass` would with the seed `seed + seed_offset`."""
        return Cycle(votes, seed + self.seed_offset)


@dataclass(frozen=True)
class StochasticLabelSampling(Delivery):
    """One label per item, drawn anew from its distribution every `resample_every` epochs.

    By default that is every epoch; the staleness probe uses larger numbers.
    """

    resample_every: int = 1

    def __post_init__(self):
        if not isinstance(self.resample_every, int) or self.resample_every < 1:
            raise InputError(
                f"{type(self).__name__}'s resample_every is {self.resample_every}; it must be a "
                "whole number of 1 or more."
            )

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        """Works for tables with only probabilities, too."""
        return Draws(votes, seed, self.resample_every)


@dataclass(frozen=True)
class ShuffledSLS(StochasticLabelSampling):
    """Sampling after the distributions were permuted across items, once.

    This keeps the statistics of the labels and breaks their match with the items.
    """

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        """The permutation depends on the seed alone, so it is the same in every epoch."""
        order = generator(seed, "shuffled-sls").permutation(len(votes))
        return Draws(votes, seed, self.resample_every, order)


@dataclass(frozen=True)
class Mixup(Delivery):
    """Convex combinations of two items of a batch, inputs and targets alike.

    They are made of the targets of any other delivery, the `base`. The papers state neither alpha
    nor the base: 1.0 is the original authors' choice for CIFAR, the majority vote their setting.
    """

    base: Delivery = field(default_factory=MajorityVote)
    alpha: float = 1.0

    def __post_init__(self):
        if not 0 < self.alpha < float("inf"):
            raise InputError(f"Mixup's alpha is {self.alpha}; it must be above 0 and finite.")

    def bind(self, votes: VoteTable, seed: int) -> BoundDelivery:
        """Binds the base to the same votes and seed."""
        return Mixed(self.base.bind(votes, seed), votes.num_classes, len(votes), self.alpha, seed)
