"""Many members trained as one by PackedClassifier, against stock Lightning running them one after
the other, with one core and one thread on both sides.

The peer is `Trainer.fit` of a bare LightningModule over torch's DataLoader(TensorDataset,
shuffle=True), validated in a single batch, with no logger, checkpoints or progress bar. It is
measured on two members and extrapolated to all of them; the pack is measured whole. Both train the
same networks on the same synthetic items for the same number of epochs, one that warms up and three
of which the fastest counts.

    python -m benchmarks packed        about 3 minutes, 2 GB
"""

import logging
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
import torch

from benchmarks.packed_peer import (
    CASES,
    EPOCHS,
    LOSSES,
    STOCK_SEEDS,
    Case,
    Measured,
    items_of,
    run_stock,
)
from benchmarks.row import Row, main
from lightning_modules.classifier import AnnotatorClassifier
from lightning_modules.packed.pack_member import Member
from lightning_modules.packed.packed_classifier import PackedClassifier


def members_of(case: Case, chosen: list[tuple[int, Any, float, float]]) -> list[Member]:
    """Members by seed, delivery, learning rate and weight decay; those of a seed share its data."""
    data = {seed: items_of(case, seed) for seed, *_ in chosen}
    members = []
    for seed, delivery, rate, weight_decay in chosen:
        optimizer = partial(torch.optim.Adam, lr=rate, weight_decay=weight_decay)
        classifier = AnnotatorClassifier(
            case.input_shape,
            case.num_classes,
            case.network,  # pyright: ignore[reportArgumentType]
            optimizer,
            seed=seed,
        )
        bound = data[seed].bind(delivery, None)
        members.append(Member(classifier, data[seed], bound, EPOCHS))
    return members


def run_pack(case: Case, threads: int) -> Measured:
    """Train all members as one pack."""
    torch.set_num_threads(threads)
    members = members_of(case, every_member(case))
    ends = []
    PackedClassifier(members).fit(lambda pack: ends.append(perf_counter()))
    last = [members[n * len(case.options())].history[-1] for n in range(len(STOCK_SEEDS))]
    train_loss, val_soft_nll = (float(np.mean([end[name] for end in last])) for name in LOSSES)
    seconds = min(stop - start for start, stop in pairwise(ends))
    return Measured(seconds, threads, train_loss, val_soft_nll)


def every_member(case: Case) -> list[tuple[int, Any, float, float]]:
    """Seed, delivery, learning rate and weight decay of all members, seed by seed."""
    return [(seed, *options) for seed in case.seeds for options in case.options()]


def rows() -> Iterator[Row]:
    """An epoch of all members of each case."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    for case in CASES:
        ours, theirs = run_pack(case, 1), run_stock(case, 1)
        yield Row(case.name, "stock Lightning run by run", ours.seconds, theirs.seconds, None)


if __name__ == "__main__":
    main(rows)
