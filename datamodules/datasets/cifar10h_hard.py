"""CIFAR-10H-Hard: images of CIFAR-10H chosen evenly over entropy, so that people disagree on most
(Singh et al. 2025).
"""

import numpy as np
import torch
from jsonargparse.typing import lazy_instance
from torch import Tensor

from core.randomness import generator
from datamodules.datasets.cifar10h import CIFAR10H
from datamodules.embedders import EfficientNetLite0, Embedder
from datamodules.frozen import FrozenInThreeParts
from datamodules.votes.table import VoteTable

BINS, PER_BIN = 10, 200


class CIFAR10HHard(FrozenInThreeParts):
    """The 1,103 images that up to 200 from each of ten bins of entropy make, with frozen embeddings
    as inputs.
    """

    num_classes = CIFAR10H.num_classes
    class_names = CIFAR10H.class_names

    def __init__(
        self,
        embedder: Embedder = lazy_instance(EfficientNetLite0),
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
        images, votes = CIFAR10H(root=self.root).read()
        rows = evenly_by_entropy(votes, self.seed if self.choice_seed is None else self.choice_seed)
        return images[torch.from_numpy(rows)], votes.take(rows)


def evenly_by_entropy(votes: VoteTable, seed: int) -> np.ndarray:
    """The rows of up to 200 items from each of ten bins of equal width between 0 and the largest
    normalised entropy, in order.

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
