"""Which items make up each batch: a pure function of (seed, epoch, rank).

An epoch can be continued in its middle.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from core.errors import InputError
from core.randomness import generator


class BatchOrder:
    """Cuts each epoch's order of items into global batches and gives every rank its share of each.

    The batch size is that of all ranks together, so that the same config means the same
    optimization on one device or eight. Every item comes exactly once per epoch over all ranks, and
    all ranks see the same number of batches: where the last batch has fewer items than there are
    ranks, the share of some is empty.

    >>> order = BatchOrder(torch.arange(10), batch_size=4, seed=0, shuffle=False)
    >>> [batch.tolist() for batch in order]
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    >>> second = BatchOrder(torch.arange(10), 3, seed=0, shuffle=False, rank=1, ranks=2)
    >>> [batch.tolist() for batch in second]
    [[1], [4], [7], []]
    """

    def __init__(
        self,
        items: Tensor,
        batch_size: int,
        seed: int,
        shuffle: bool,
        rank: int = 0,
        ranks: int = 1,
    ):
        if batch_size < ranks:
            raise InputError(
                f"data.batch_size is {batch_size}; it is shared by {ranks} device(s), so it must "
                f"be at least {ranks}."
            )
        self.items, self.batch_size, self.seed, self.shuffle = items, batch_size, seed, shuffle
        self.rank, self.ranks = rank, ranks
        self.epoch = 0
        self.device = items.device
        self._given = 0
        self._resume = (0, 0)

    def __len__(self) -> int:
        return -(-len(self.items) // self.batch_size)

    def items_of_batch(self, number: int) -> int:
        """How many items the batch of this number has over all ranks: fewer in the last one."""
        return min(self.batch_size, len(self.items) - number * self.batch_size)

    def to(self, device: torch.device) -> None:
        """Give batches on a device from now on: an epoch's order is moved there once, and no step
        waits for its batch's numbers.
        """
        self.device = device

    def set_epoch(self, epoch: int) -> None:
        """Lightning calls this before each epoch."""
        self.epoch = epoch

    @property
    def start(self) -> int:
        """The number of this epoch's first batch: 0, except in an epoch that is being continued."""
        epoch, given = self._resume
        return given if epoch == self.epoch and given < len(self) else 0

    def __iter__(self) -> Iterator[Tensor]:
        # A generator does nothing until its first batch is asked for, which is after `set_epoch`.
        order = self.items
        if self.shuffle:
            shuffled = generator(self.seed, "order", self.epoch).permutation(len(order))
            order = order[torch.from_numpy(shuffled)]
        order = order.to(self.device)
        for number in range(self.start, len(self)):
            self._given = number + 1
            batch = order[number * self.batch_size :][: self.batch_size]
            yield batch[self.rank :: self.ranks]

    def state_dict(self) -> dict[str, int]:
        """The epoch, and how many of its batches were given."""
        return {"epoch": self.epoch, "given": self._given}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Start that epoch after those batches; other epochs start at their beginning."""
        self._resume = (state["epoch"], state["given"])
