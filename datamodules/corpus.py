"""What a dataset loads: inputs, votes and splits, before any delivery."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from core.errors import InputError
from datamodules.loading import TensorLoader, WorkerLoader
from datamodules.memmap_inputs import MemmapInputs
from datamodules.order import BatchOrder
from datamodules.preparation import CropFlip, Standardize
from datamodules.votes.splitting import stratified_order
from datamodules.votes.table import VoteTable

ENTROPY_BINS = 10  # that fewer training items are stratified by, besides their majority class


@dataclass
class Corpus:
    """A dataset as it lies on disk, before any split or delivery."""

    # [N, channels or features, ...] where it fits in memory, else a dataset of single inputs
    inputs: Tensor | Dataset[Tensor]
    votes: VoteTable
    # row numbers of "train", "val" and "test"; val and test may be the same
    splits: dict[str, np.ndarray]
    # of each channel, on the scale from 0 to 1; for inputs in memory only
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    scale: float = 1.0  # the largest stored value: 255 for bytes
    augment: bool = False  # random crop and flip of training images; for inputs in memory only
    padding: int = 4  # pixels that a crop may be shifted by
    # digest of the items themselves (`datamodules.fingerprint`), where inputs are made of them
    items: dict[str, Any] | None = None

    def check(self, num_classes: int) -> None:
        """Raises an `InputError` where inputs, votes and splits do not fit together."""
        items = len(self.inputs)  # pyright: ignore[reportArgumentType]
        if items != len(self.votes):
            raise InputError(
                f"there are {items} inputs but {self.votes.source} has {len(self.votes)} "
                "rows; they must be the same items."
            )
        if self.votes.num_classes != num_classes:
            raise InputError(
                f"{self.votes.source} has {self.votes.num_classes} classes; this dataset has "
                f"{num_classes}."
            )
        for name, rows in self.splits.items():
            if len(rows) == 0:
                raise InputError(f"the {name} split is empty; every split needs at least one item.")

    def trained_on(self, train_items: int | None, seed: int) -> "Corpus":
        """The same with no more training items than these; validation and test stay as they are.

        They are stratified by majority class and entropy. Of one seed, more items hold the fewer.
        """
        if train_items is None:
            return self
        rows = fewer_rows(self.votes, self.splits["train"], train_items, seed)
        return replace(self, splits={**self.splits, "train": rows})

    def loader(
        self,
        order: BatchOrder,
        seed: int,
        augment: bool = False,
        num_workers: int = 0,
        device: torch.device | None = None,
    ) -> TensorLoader | WorkerLoader:
        """Batches in this order, by the way that suits the inputs.

        Tensors are moved to the device whole, mapped files are read by the batch, and other
        datasets go through workers. `seed` is that of the crops and flips.
        """
        if isinstance(self.inputs, MemmapInputs):
            return TensorLoader(self.inputs, order)
        if not isinstance(self.inputs, Tensor):
            return WorkerLoader(self.inputs, order, num_workers)
        stored = self.inputs if device is None else self.inputs.to(device)
        if augment:
            order.to(stored.device)
        if augment and self.augment:
            crops = CropFlip(stored, self.mean, self.std, self.scale, seed, self.padding)
            return TensorLoader(crops, order)
        return TensorLoader(Standardize(stored, self.mean, self.std, self.scale), order)


def held_out_split(votes: VoteTable, eval_fraction: float, seed: int) -> dict[str, np.ndarray]:
    """A training part, and one that is validation and test in one, stratified by majority class.

    So "Same Target, Different Basins" has it: the checkpoint is chosen on the evaluation part.
    """
    train, held_out = votes.split([1 - eval_fraction, eval_fraction], seed)
    return {"train": train, "val": held_out, "test": held_out}


def fewer_rows(votes: VoteTable, rows: np.ndarray, number: int, seed: int) -> np.ndarray:
    """So many of these rows of a table, in their order.

    >>> votes = VoteTable([[9, 0], [0, 9]] * 50)
    >>> rows = fewer_rows(votes, np.arange(80), 8, seed=0)
    >>> len(rows), int(votes.majority[rows].sum())
    (8, 4)
    """
    if number > len(rows):
        raise InputError(
            f"data.train_items is {number}, but there are only {len(rows)} training items; give a "
            "smaller number, or null for all of them."
        )
    order = stratified_order(votes.take(rows).strata(ENTROPY_BINS), seed)
    return rows[np.sort(order[:number])]
