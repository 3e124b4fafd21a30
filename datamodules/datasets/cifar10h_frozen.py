"""CIFAR-10H with the embeddings of a frozen model as inputs, for heads that train in seconds."""

import numpy as np
from torch import Tensor

from datamodules.corpus import held_out_split
from datamodules.datasets.cifar10h import CIFAR10H
from datamodules.embedders import EfficientNetLite0, Embedder
from datamodules.frozen import FrozenDataModule
from datamodules.votes.table import VoteTable


class CIFAR10HFrozen(FrozenDataModule):
    """The same items, votes and splits as CIFAR10H.

    The inputs are embeddings, made once and kept in `cache`.
    """

    num_classes = CIFAR10H.num_classes
    class_names = CIFAR10H.class_names

    def __init__(
        self,
        embedder: Embedder = EfficientNetLite0(),
        root: str = "data",
        eval_fraction: float = 0.2,
        **kwargs,
    ):
        """
        Args:
            embedder: A class of datamodules.embedders by name, with its own options; the paper used
                DINOv2-small (TimmEmbedder).
            root: The folder that holds `cifar-10h` and `cifar-10-batches-bin`; files that are
                absent are downloaded to it.
            eval_fraction: Share of the images held out for evaluation.
        """
        super().__init__(embedder=embedder, **kwargs)
        self.root, self.eval_fraction = root, eval_fraction

    def read(self) -> tuple[Tensor, VoteTable]:
        """Images and votes, as `CIFAR10H` reads them."""
        return CIFAR10H(root=self.root).read()

    def split(self, votes: VoteTable) -> dict[str, np.ndarray]:
        """The split of `CIFAR10H`, so that runs of both can be compared item by item."""
        return held_out_split(votes, self.eval_fraction, self.seed)
