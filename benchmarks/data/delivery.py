"""One epoch of labels: StochasticLabelSampling (SLS) and Multipass, against what a user of torch or
numpy would write, everything that can be prepared once prepared on all sides.

SLS draws a label per item from its distribution. Its peers: `torch.searchsorted` of `torch.rand` in
the running sums of the distributions, the same in double precision (SLS draws double numbers, so
that its labels are exact for any number of votes), `torch.multinomial`, and
`numpy.random.Generator.multinomial`. The peers draw from one running stream; SLS makes a generator
for each (seed, epoch), so that an epoch's labels do not depend on those before.

Multipass gives each item its vote number `epoch % length`. Its peer is `torch.gather` from a table
of all votes, shuffled and padded to the longest.

    PLURALITY_DATA=data python -m benchmarks delivery        about 20 seconds

Without PLURALITY_DATA (the folder that holds cifar-10h/cifar10h-counts.npy), a synthetic table of
the same shape takes CIFAR-10H's place.
"""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import torch

from benchmarks.measure import alternate
from benchmarks.row import Row, main
from datamodules.votes.delivery import Delivery, Multipass, StochasticLabelSampling
from datamodules.votes.table import VoteTable

LARGE = (200_000, 100, 20)  # items, classes, votes of an item
LIMITS = {"torch.searchsorted, torch.rand": 1.0, "torch.multinomial": 10.0, "torch.gather": 1.0}


def rows() -> Iterator[Row]:
    """SLS and Multipass on CIFAR-10H's table and on a larger one."""
    for votes, what, calls in (
        (*cifar10h_votes(), 20),
        (synthetic_votes(*LARGE), "{:,} x {}, synthetic".format(*LARGE), 1),
    ):
        for name, delivery, peers in (
            ("SLS", StochasticLabelSampling(), sampling_peers(votes)),
            ("Multipass", Multipass(), gathering_peers(votes)),
        ):
            seconds = alternate(10, {"ours": epochs_of(delivery, votes), **peers}, calls)
            ours = seconds.pop("ours")
            for peer, theirs in seconds.items():
                yield Row(f"{name}, an epoch, {what}", peer, ours, theirs, LIMITS.get(peer))


def epochs_of(delivery: Delivery, votes: VoteTable) -> Callable[[], object]:
    """Labels of one epoch after the other."""
    bound, epochs = delivery.bind(votes, seed=0), count()
    return lambda: bound.targets(next(epochs))


def sampling_peers(votes: VoteTable) -> dict[str, Callable[[], object]]:
    """Ways to draw a label for each item from its distribution."""
    probs = torch.from_numpy(votes.float_probs())
    exact, rng, items = votes.probs, np.random.default_rng(0), len(votes)
    running = exact.cumsum(1)
    double = torch.from_numpy(running / running[:, -1:])
    single = double.float()

    def search(running: torch.Tensor) -> torch.Tensor:
        wanted = torch.rand(items, 1, dtype=running.dtype)
        return torch.searchsorted(running, wanted, right=True)[:, 0]

    return {
        "torch.searchsorted, torch.rand": lambda: search(single),
        "the same in double precision": lambda: search(double),
        "torch.multinomial": lambda: torch.multinomial(probs, 1)[:, 0],
        "numpy Generator.multinomial": lambda: rng.multinomial(1, exact).argmax(1),
    }


def gathering_peers(votes: VoteTable) -> dict[str, Callable[[], object]]:
    """Each item's vote number `epoch % length` from a padded table."""
    assert votes.counts is not None
    lengths, shuffle = votes.counts.sum(1), np.random.default_rng(0).permutation
    padded = np.zeros((len(votes), lengths.max()), np.int64)
    for row, counts in zip(padded, votes.counts, strict=True):
        cast = shuffle(np.repeat(np.arange(len(counts)), counts))
        row[: len(cast)] = cast
    table, length, epochs = torch.from_numpy(padded), torch.from_numpy(lengths), count()
    return {"torch.gather": lambda: table.gather(1, (next(epochs) % length)[:, None])[:, 0]}


def cifar10h_votes() -> tuple[VoteTable, str]:
    """The real table where it is at hand, else a synthetic one, and what to call it."""
    root = os.environ.get("PLURALITY_DATA")
    if root is None:
        return synthetic_votes(10_000, 10, 51), "10,000 x 10, synthetic"
    path = Path(root) / "cifar-10h" / "cifar10h-counts.npy"
    return VoteTable(np.load(path, allow_pickle=False)), "10,000 x 10, CIFAR-10H"


def synthetic_votes(items: int, classes: int, votes_per_item: int) -> VoteTable:
    """A table of random votes, equally many for each item."""
    cast = np.random.default_rng(0).integers(classes, size=(items, votes_per_item))
    cell = (cast + np.arange(items)[:, None] * classes).ravel()
    return VoteTable(
        np.bincount(cell, minlength=items * classes).reshape(items, classes).astype(np.int32)
    )


if __name__ == "__main__":
    main(rows)
