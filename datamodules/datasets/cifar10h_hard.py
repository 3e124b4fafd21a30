"""CIFAR-10H-Hard: images of CIFAR-10H on most of which people disagree (Singh et al. 2025).

They are chosen evenly over entropy.
"""

import numpy as np
import torch
from torch import Tensor

from core.randomness import generator
from datamodules.datasets.cifar10h import CIFAR10H
from datamodules.embedders import EfficientNetLite0, Embedder
from datamodules.frozen import FrozenInThreeParts
from datamodules.votes.table import VoteTable

BINS, PER_BIN = 10, 200


class CIFAR10HHard(FrozenInThreeParts):
    """Up to 200 images from each of ten bins of entropy, 1,103 in all, as frozen embeddings."""

    num_classes = CIFAR10H.num_classes
    class_names = CIFAR10H.class_names

    def __init__(
        self,
        embedder: Embedder = EfficientNetLite0(),
        choice_seed: int | None = 0,
        **kwargs,
    ):
        """
        Args:
            embedder: A class of datamodules.embedders by name, with its own options; the paper used
                DINOv2-small (TimmEmbedder).
            choice_seed: Of the choice within the three bins that hold more than 200 images. It is
                apart from the run's seed, so that all runs see the same images; null for the run's
                seed.
        """
        super().__init__(embedder=embedder, **kwargs)
        self.choice_seed = choice_seed

    def read(self) -> tuple[Tensor, VoteTable]:
        """The chosen images as bytes, and their votes."""
        images, votes = CIFAR10H(root=self.root).read()
        seed = self.seed if self.choice_seed is None else self.choice_seed
        rows = evenly_by_entropy(votes, seed)
        return images[torch.from_numpy(rows)], votes.take(rows)


def evenly_by_entropy(votes: VoteTable, seed: int) -> np.ndarray:
    """The rows, in order, of up to 200 items from each of ten bins of normalised entropy.

    The bins have equal width, between 0 and the largest entropy.
    Bins hold their lower edge and not their upper one, so the items of the very largest entropy are
    in none: only so are there as many as published.

    >>> evenly_by_entropy(VoteTable([[9, 0], [8, 1], [5, 4], [9, 0]]), seed=0).tolist()
    [0, 1, 3]
    """
    entropy = votes.normalized_entropy
    place = np.digitize(entropy, np.linspace(0, entropy.max(), BINS + 1)) - 1
    shuffled = generator(seed, "hard-choice").permutation(len(votes))
    by_bin = shuffled[np.argsort(place[shuffled], kind="stable")]
    size = np.bincount(place, minlength=BINS + 1)
    rank = np.arange(len(votes)) - np.repeat(np.cumsum(size) - size, size)  # within the bin
    return np.sort(by_bin[(rank < PER_BIN) & (place[by_bin] < BINS)])
