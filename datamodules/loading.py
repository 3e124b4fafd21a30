"""Loaders that yield (inputs, index) and never touch targets.

Small data is held as whole tensors; large data goes through a DataLoader.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from datamodules.order import BatchOrder
from lightning_modules.threads import one_thread


class Batch(NamedTuple):
    """What every training and evaluation step receives.

    `index` is each item's row in the whole vote table.
    """

    inputs: Tensor
    targets: Tensor
    index: Tensor  # pyright: ignore[reportIncompatibleMethodOverride]  # tuples have an index(), too


class TensorLoader:
    """Batches straight from tensors in memory or on the device: no workers, no Python per item.

    `prepare(index, epoch)` gives the inputs of one batch, augmented if that is wanted; on a CPU it
    is left to one thread. An epoch can be continued in its middle.
    """

    batch_sampler = None  # Lightning looks for it wherever there is a `sampler`

    def __init__(self, prepare: Callable[[Tensor, int], Tensor], order: BatchOrder):
        self.prepare, self.sampler = prepare, order  # Lightning calls `sampler.set_epoch`

    def __len__(self) -> int:
        return len(self.sampler)

    def items_of_batch(self, number: int) -> int:
        """How many items the batch of this number has over all ranks."""
        return self.sampler.items_of_batch(number)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for index in self.sampler:
            with one_thread():
                inputs = self.prepare(index, self.sampler.epoch)
            yield inputs, index

    def state_dict(self) -> dict[str, int]:
        """How far this epoch has come; Lightning keeps it in checkpoints."""
        return self.sampler.state_dict()

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue after the batches that a checkpoint says were given."""
        self.sampler.load_state_dict(state)


class WorkerLoader(DataLoader):
    """The plain DataLoader, for inputs that do not fit in memory.

    Same order and same resumption as `TensorLoader`, with any number of workers. `dataset[i]` gives
    the input of item i alone. Random augmentation in the dataset should be a function of i and a
    seed.
    """

    def __init__(self, dataset: Dataset[Tensor], order: BatchOrder, num_workers: int = 0):
        pairs = _WithIndex(dataset)
        batches = _Lists(order)
        super().__init__(
            pairs, batch_sampler=batches, num_workers=num_workers, collate_fn=pairs.collate
        )
        self._given = 0

    def __iter__(self):  # pyright: ignore[reportIncompatibleMethodOverride]
        # Workers run ahead of training, so what counts for a resume is what was handed out here,
        # not what the sampler gave.
        self._given = self._order.start
        for batch in super().__iter__():
            self._given += 1
            yield batch

    def items_of_batch(self, number: int) -> int:
        """How many items the batch of this number has over all ranks."""
        return self._order.items_of_batch(number)

    @property
    def _order(self) -> BatchOrder:
        return self.batch_sampler.sampler  # pyright: ignore

    def state_dict(self) -> dict[str, int]:
        """How many batches of this epoch were handed out; workers may be ahead of that."""
        return {"epoch": self._order.epoch, "given": self._given}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue after the batches that a checkpoint says were given."""
        self._order.load_state_dict(state)


class _WithIndex(Dataset):
    def __init__(self, dataset: Dataset[Tensor]):
        self.dataset = dataset

    def __getitem__(self, item: int) -> tuple[Tensor, int]:
        return self.dataset[item], item

    def collate(self, batch: list[tuple[Tensor, int]]) -> list[Tensor]:
        """The usual collation, also of no items at all.

        Those have the shape of a batch with items, as they do where inputs are in memory.
        """
        if batch:
            return default_collate(batch)
        return [part[:0] for part in default_collate([self[0]])]


class _Lists:
    """A batch sampler as DataLoader wants it: lists of ints.

    `sampler` is where Lightning looks for `set_epoch`.
    """

    def __init__(self, order: BatchOrder):
        self.sampler = order

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[list[int]]:
        return (index.tolist() for index in self.sampler)
