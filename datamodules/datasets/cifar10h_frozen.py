"""CIFAR-10H with the embeddings of a frozen model as inputs, for heads that train in seconds."""

import numpy as np
from torch import Tensor

from datamodules.datasets.cifar10h import CIFAR10H
from datamodules.embedders import EfficientNetLite0, Embedder
from datamodules.frozen import FrozenDataModule
from datamodules.votes.table import VoteTable


class CIFAR10HFrozen(FrozenDataModule, CIFAR10H):  # pyright: ignore[reportIncompatibleVariableOverride]
    """The same items, votes and splits as CIFAR10H.

    The inputs are embeddings, made once and kept in `cache`.
    """

    def __init__(self, embedder: Embedder = EfficientNetLite0(), **kwargs):
        """
        Args:
            embedder: A class of datamodules.embedders by name, with its own options; the paper used
                DINOv2-small (TimmEmbedder).
        """
        super().__init__(embedder=embedder, **kwargs)

    def read(self) -> tuple[Tensor, VoteTable]:
        """Images and votes, as `CIFAR10H` reads them."""
        return CIFAR10H.read(self)

    def split(self, votes: VoteTable) -> dict[str, np.ndarray]:
        """The split of `CIFAR10H`, so that runs of both can be compared item by item."""
        return CIFAR10H.split(self, votes)
