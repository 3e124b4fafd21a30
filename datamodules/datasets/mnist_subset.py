"""Few digits of MNIST per class, to see how many a network needs before they suffice."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from core.randomness import generator, some_of
from datamodules.corpus import Corpus
from datamodules.io.mnist import DIGITS, SIDE, fetch_mnist, read_mnist
from datamodules.vote_datamodule import VoteDataModule
from datamodules.votes.table import VoteTable


class MNISTSubset(VoteDataModule):
    """So many training digits of each class, drawn by the run's seed.

    Each has one vote, its label. Models are judged on MNIST's own test part.
    """

    num_classes = DIGITS
    input_shape = (1, SIDE, SIDE)
    class_names = tuple("0123456789")
    same_items = False

    def __init__(
        self,
        root: str = "data",
        per_class: int = 150,
        val_items: int = 1000,
        most_test: int | None = None,
        **kwargs,
    ):
        """
        Args:
            root: The folder that holds `mnist`; what is absent is downloaded to it.
            per_class: Training items of each digit, drawn without replacement.
            val_items: Validation items, drawn from the rest of MNIST's training part.
            most_test: At most so many of the 10,000 test items, the same in every run; null for
                all.
        """
        super().__init__(**kwargs)
        numbers = {"per_class": per_class, "val_items": val_items, "most_test": most_test}
        for option, number in numbers.items():
            if number is not None and number < 1:
                raise InputError(f"data.{option} is {number}; it must be 1 or more.")
        self.root, self.per_class, self.val_items = root, per_class, val_items
        self.most_test = most_test

    def prepare_data(self) -> None:
        """Download what is absent, in one process."""
        fetch_mnist(self.root)

    def load(self) -> Corpus:
        """The chosen items alone, normalised by the training ones."""
        images, digits, splits = self._read()
        votes = VoteTable(np.eye(DIGITS, dtype=np.int32)[digits], source="MNIST's labels")
        inputs = torch.from_numpy(images)[:, None]
        seen = inputs[torch.from_numpy(splits["train"])].double() / 255
        mean, std = (float(seen.mean()),), (float(seen.std()),)
        return Corpus(inputs, votes, splits, mean, std, scale=255)

    def original(self, rows: Sequence[int] | np.ndarray) -> Tensor:
        """The digits as bytes, in three equal channels."""
        return torch.from_numpy(self._read()[0])[torch.as_tensor(rows), None].expand(-1, 3, -1, -1)

    def _read(self) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Images and digits of the chosen items alone, and which of them are in which split."""
        offered, held_out = read_mnist(self.root, "train"), read_mnist(self.root, "test")
        train, val = draw_subset(offered.digits, self.per_class, self.val_items, self.seed)
        test = some_of(np.arange(len(held_out.digits)), self.most_test, seed=0)
        images = np.concatenate([offered.images[train], offered.images[val], held_out.images[test]])
        digits = np.concatenate([offered.digits[train], offered.digits[val], held_out.digits[test]])
        parts = np.split(np.arange(len(digits)), np.cumsum([len(train), len(val)]))
        return images, digits, dict(zip(("train", "val", "test"), parts, strict=True))


def draw_subset(
    digits: np.ndarray, per_class: int, val_items: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of `per_class` items of each digit, and of `val_items` others.

    Of one seed, a larger subset holds the smaller ones.

    >>> train, val = draw_subset(np.arange(100) % 10, per_class=2, val_items=5, seed=0)
    >>> (train % 10).tolist(), len(set(val.tolist()) - set(train.tolist()))
    ([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9], 5)
    """
    order = generator(seed, "mnist-subset").permutation(len(digits))
    by_digit = [order[digits[order] == digit] for digit in range(DIGITS)]
    fewest = min(map(len, by_digit))
    if per_class > fewest:
        raise InputError(
            f"data.per_class is {per_class}, but a digit of MNIST has only {fewest} training items."
        )
    rest = np.sort(np.concatenate([rows[per_class:] for rows in by_digit]))
    if val_items > len(rest):
        raise InputError(
            f"data.val_items is {val_items}, but only {len(rest)} training items are left beside "
            f"{per_class} of each digit."
        )
    return np.concatenate([rows[:per_class] for rows in by_digit]), some_of(rest, val_items, seed)
