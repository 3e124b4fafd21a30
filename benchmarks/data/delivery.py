"""One epoch of targets, and what it costs at scale: StochasticLabelSampling (SLS) and Multipass,
against loops over items.

The peer is a loop of `numpy.random.choice`, one call per item: from the item's distribution for
SLS, from its list of votes for Multipass. Multipass is also set against the loop that does the same
work, which indexes each item's own shuffled list with epoch % length. The loops are not charged for
making a tensor of their list. All use one thread, so that other work on the machine does not decide
the ratio.

    PLURALITY_DATA=data python -m benchmarks.data.delivery        about 45 seconds, 4 GB, on Linux

Without PLURALITY_DATA (the folder that holds cifar-10h/cifar10h-counts.npy), a synthetic table of
the same shape takes CIFAR-10H's place. Then a table of 1,000,000 x 100 shows the time to bind, the
time per epoch and the memory that `targets(epoch)` takes beyond what was bound.

Target: at least 100 times the `numpy.random.choice` loop for both; memory linear in the number of
items.
"""

import ctypes
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from benchmarks.measure import best_of, linux_counts_memory, verdict
from datamodules.votes.delivery import Delivery, Multipass, StochasticLabelSampling
from datamodules.votes.table import VoteTable

DELIVERIES: dict[str, Delivery] = {"SLS": StochasticLabelSampling(), "Multipass": Multipass()}


def main() -> None:
    """Compare with the loops, then measure at scale."""
    torch.set_num_threads(1)
    conclusions = compare_with_loops()
    if linux_counts_memory():
        conclusions += measure_scale()
    print("\n" + "\n".join(conclusions))


def compare_with_loops() -> list[str]:
    """Print milliseconds per epoch of each way; returns the ratios in words."""
    votes, origin = cifar10h_votes()
    assert votes.counts is not None
    items, classes = votes.counts.shape
    probs = votes.probs
    shuffle = np.random.default_rng(0).permutation
    own_votes = [shuffle(np.repeat(np.arange(classes), row)) for row in votes.counts]
    own_lists = [own.tolist() for own in own_votes]
    loops = {
        "SLS": best_of(3, lambda epoch: [np.random.choice(classes, p=row) for row in probs]),  # noqa: NPY002
        "Multipass": best_of(3, lambda epoch: [np.random.choice(own) for own in own_votes]),  # noqa: NPY002
    }
    index_loop = best_of(10, lambda epoch: [own[epoch % len(own)] for own in own_lists])

    print(
        f"{items:,} x {classes} {origin}, {votes.counts.sum(1).mean():.1f} votes per item; "
        "milliseconds per epoch of targets\n"
    )
    print(f"{'':12s}{'targets(epoch)':>16s}{'numpy.random.choice':>22s}{'index loop':>14s}")
    conclusions = []
    for name, delivery in DELIVERIES.items():
        seconds = best_of(100, delivery.bind(votes, seed=0).targets)
        same_work = f"{index_loop * 1e3:14.2f}" if name == "Multipass" else ""
        print(f"{name:12s}{seconds * 1e3:16.3f}{loops[name] * 1e3:22.1f}{same_work}")
        ratio = loops[name] / seconds
        also = f"; {index_loop / seconds:.0f}x the index loop" if same_work else ""
        conclusions.append(
            f"{name}, {items:,} x {classes}: {ratio:,.0f}x the numpy.random.choice loop (target "
            f"100x): {verdict(ratio >= 100)}{also}"
        )
    return conclusions


def measure_scale() -> list[str]:
    """Print seconds and memory at three sizes; returns whether memory is linear."""
    classes, votes_per_item = 100, 20
    print(
        f"\nN x {classes} synthetic table, {votes_per_item} votes per item; extra memory is the "
        "peak of one targets(epoch) call\n"
    )
    print(
        f"{'':12s}{'N':>12s}{'bind, s':>12s}{'epoch, s':>12s}"
        f"{'extra, MB':>12s}{'bytes per item':>18s}"
    )
    conclusions = []
    for name, delivery in DELIVERIES.items():
        per_item = []
        for items in (250_000, 500_000, 1_000_000):
            votes = synthetic_votes(items, classes, votes_per_item)
            start = perf_counter()
            bound = delivery.bind(votes, seed=0)
            bind_seconds = perf_counter() - start
            epoch_seconds = best_of(5, bound.targets)
            extra = peak_extra_bytes(partial(bound.targets, 5))
            per_item.append(extra / items)
            print(
                f"{name:12s}{items:12,}{bind_seconds:12.2f}{epoch_seconds:12.3f}"
                f"{extra / 1e6:12.1f}{per_item[-1]:18.1f}"
            )
        conclusions.append(
            f"{name}, memory of an epoch: {min(per_item):.1f} to {max(per_item):.1f} bytes per "
            "item from 250,000 to 1,000,000 items "
            f"(target: linear in N): {verdict(max(per_item) < 1.1 * min(per_item))}"
        )
    return conclusions


def cifar10h_votes() -> tuple[VoteTable, str]:
    """The real table where it is at hand, else a synthetic one, and which of them."""
    root = os.environ.get("PLURALITY_DATA")
    if root is None:
        return synthetic_votes(10_000, 10, 51), "synthetic votes (PLURALITY_DATA is not set)"
    return VoteTable(
        np.load(Path(root) / "cifar-10h" / "cifar10h-counts.npy", allow_pickle=False)
    ), "CIFAR-10H votes"


def synthetic_votes(items: int, classes: int, votes_per_item: int) -> VoteTable:
    """A table of random votes, equally many for each item."""
    cast = np.random.default_rng(0).integers(classes, size=(items, votes_per_item))
    cell = (cast + np.arange(items)[:, None] * classes).ravel()
    return VoteTable(
        np.bincount(cell, minlength=items * classes).reshape(items, classes).astype(np.int32)
    )


def peak_extra_bytes(work: Callable[[], object]) -> int:
    """How far resident memory rises while `work` runs, as Linux counts it."""
    libc, huge_pages_off = ctypes.CDLL(None), 41
    libc.prctl(huge_pages_off, 1, 0, 0, 0)  # or every array would be rounded up to 2 MB
    libc.malloc_trim(0)  # or freed memory would be used again and the rise would not be seen
    Path("/proc/self/clear_refs").write_text("5")  # starts the peak, VmHWM, anew
    before = resident_bytes("VmRSS")
    work()
    peak = resident_bytes("VmHWM")
    libc.prctl(huge_pages_off, 0, 0, 0, 0)
    return peak - before


def resident_bytes(field: str) -> int:
    """What Linux counts for this process under a name."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()
