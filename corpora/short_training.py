"""A few epochs of a small network on all images in memory: what building a corpus needs of
training, as a function of the seed alone.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.randomness import generator
from lightning_modules.networks import Network
from lightning_modules.threads import one_thread

BATCH = 64  # as everywhere in the paper
RATE = 1e-3  # of Adam; the paper's text does not state it


@contextmanager
def reproducibly(seed: int) -> Iterator[None]:
    """One thread, and torch's random numbers from a seed: the same weights to the last bit on every
    run of one machine. Both are put back after.
    """
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def trained(
    network: Callable[[tuple[int, ...], int], Network],
    images: np.ndarray,
    labels: np.ndarray,
    epochs: int,
    seed: int,
    after_epoch: Callable[[Network], None] = lambda network: None,
) -> Network:
    """A network by its class, trained with cross-entropy on distributions [N, K]; `after_epoch` may
    look at it as it learns.
    """
    with reproducibly(seed):
        inputs, targets = as_inputs(images), torch.from_numpy(labels).float()
        learner = network(tuple(inputs.shape[1:]), targets.shape[1])
        optimizer = torch.optim.Adam(learner.parameters(), lr=RATE)
        for epoch in range(epochs):
            for rows in batches(len(inputs), BATCH, seed, epoch):
                loss = F.cross_entropy(learner(inputs[rows]), targets[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            after_epoch(learner)
        return learner


def predicted(network: nn.Module, images: np.ndarray, chunk: int = 4096) -> Tensor:
    """The probabilities that a classifier gives to each class of images, [N, K]."""
    with torch.no_grad():
        return torch.cat(
            [
                network(as_inputs(images[start : start + chunk])).softmax(1)
                for start in range(0, len(images), chunk)
            ]
        )


def as_inputs(images: np.ndarray) -> Tensor:
    """Bytes [N, 28, 28] as what networks see, [N, 1, 28, 28] from 0 to 1."""
    return torch.from_numpy(images)[:, None].float() / 255


def batches(items: int, size: int, seed: int, epoch: int) -> Iterator[Tensor]:
    """The rows of each batch of an epoch, in an order that depends on the seed and the epoch alone.

    >>> sorted(row for rows in batches(5, 2, seed=0, epoch=3) for row in rows.tolist())
    [0, 1, 2, 3, 4]
    """
    yield from torch.from_numpy(generator(seed, "short-training", epoch).permutation(items)).split(
        size
    )
