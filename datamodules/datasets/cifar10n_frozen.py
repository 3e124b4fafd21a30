"""CIFAR-10N with the embeddings of a frozen model as inputs, for heads that train in seconds."""

import numpy as np
import torch
from torch import Tensor

from datamodules.datasets.cifar10h import CIFAR10H
from datamodules.datasets.cifar10n import CIFAR10N, high_disagreement_by_votes, split_by_votes
from datamodules.embedders import EfficientNetLite0, Embedder
from datamodules.embedders.embedder import Inputs
from datamodules.frozen import FrozenDataModule
from datamodules.votes.table import VoteTable


class CIFAR10NFrozen(FrozenDataModule):
    """The same items, votes and splits as CIFAR10N.

    The inputs are embeddings, made once and kept in `cache`; those of CIFAR-10H's images are
    CIFAR10HFrozen's.
    """

    num_classes = CIFAR10N.num_classes
    class_names = CIFAR10N.class_names

    def __init__(
        self,
        embedder: Embedder = EfficientNetLite0(),
        root: str = "data",
        val_fraction: float = 0.1,
        **kwargs,
    ):
        """
        Args:
            embedder: A class of datamodules.embedders by name, with its own options.
            root: The folder that holds `cifar-10n`, `cifar-10-batches-bin` and `cifar-10h`; files
                that are absent are downloaded to it.
            val_fraction: Share of the 50,000 images that validates, stratified by majority class
                and entropy.
        """
        super().__init__(embedder=embedder, **kwargs)
        self.root, self.val_fraction = root, val_fraction

    def read(self) -> tuple[Tensor, VoteTable]:
        """Images and votes, as `CIFAR10N` reads them."""
        return CIFAR10N(root=self.root).read()

    def split(self, votes: VoteTable) -> dict[str, np.ndarray]:
        """The split of `CIFAR10N`, so that runs of both can be compared item by item."""
        return split_by_votes(votes, self.val_fraction, self.seed)

    def high_disagreement(self, quantile: float = 0.9) -> np.ndarray:
        """As `CIFAR10N` has it."""
        assert self.corpus is not None
        return high_disagreement_by_votes(self.corpus.votes, quantile)

    def embed(self, items: Inputs) -> Tensor:
        """CIFAR-10H's images apart: another dataset may have embedded them already."""
        own = len(items) - len(CIFAR10H(root=self.root).read()[1])
        return torch.cat([super().embed(items[:own]), super().embed(items[own:])])
