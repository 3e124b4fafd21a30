"""Many members trained as one by PackedClassifier, against stock Lightning running them one after
the other.

The peer is `Trainer.fit` of a bare LightningModule over torch's DataLoader(TensorDataset,
shuffle=True), validated in a single batch, with no logger, checkpoints or progress bar. It is
measured on two members and extrapolated to all of them; the pack is measured whole. Both train the
same networks on the same synthetic items for the same number of epochs, one that warms up and three
of which the fastest counts, and both are given one thread and then two: more are faster on an idle
machine, slower where other work holds one of them up (much slower, but for OMP_WAIT_POLICY=PASSIVE,
which all measurements have). The better counts, for both alike. The losses that both end with are
printed; they differ by the order of the items and by dropout's draws. (The tests give both the same
order and the same draws, and find the same weights.)

Packs are measured in one process with one thread and with two, and as two packs in two processes of
one thread, as `study run` does it.

    python -m benchmarks.packed        about 3 minutes, 2 GB

The physical limits are the fastest float32 matmul (4,096 x 4,096) and the fastest stream (c = a + b
over 800 MB) of this run. A step is counted as its matmuls and convolutions, and as nine passes over
the weights: one of the forward pass, one that writes gradients, seven of Adam. Where the weights
stay in the processor's cache, the second figure may lie above the bandwidth of memory.
"""

import logging
import warnings
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.measure import SPAWN, best_of, verdict, with_idle_threads_asleep
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
from lightning_modules.classifier import AnnotatorClassifier
from lightning_modules.packed.pack_member import Member
from lightning_modules.packed.packed_classifier import PackedClassifier

THREADS = (1, 2)
CORES = 2
PASSES_OVER_WEIGHTS = 9


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


def run_packs_side_by_side(case: Case) -> Measured:
    """Two packs of half the members each, in processes of one thread, as `study run` does it on two
    cores.
    """
    barrier, results = SPAWN.Barrier(CORES), SPAWN.SimpleQueue()
    processes = [
        SPAWN.Process(target=run_part, args=(case, part, barrier, results)) for part in range(CORES)
    ]
    for process in processes:
        process.start()
    epochs, last = zip(*(results.get() for _ in processes), strict=True)
    for process in processes:
        process.join()
    slower = [max(epoch) for epoch in zip(*epochs, strict=True)]
    train_loss, val_soft_nll = np.mean([losses for part in last for losses in part], 0).tolist()
    return Measured(min(slower), 1, train_loss, val_soft_nll, " in each of 2 processes")


def run_part(case: Case, part: int, barrier, results) -> None:
    """Train one process's share of the members, epoch by epoch beside the others."""
    torch.set_num_threads(1)
    every = every_member(case)
    mine = every[part * len(every) // CORES : (part + 1) * len(every) // CORES]
    members = members_of(case, mine)
    ends = []

    def after_epoch(pack: PackedClassifier) -> None:
        barrier.wait()
        ends.append(perf_counter())

    PackedClassifier(members).fit(after_epoch)
    first = case.options()[0]
    compared = [
        member.history[-1]
        for member, (seed, *options) in zip(members, mine, strict=True)
        if tuple(options) == first and seed in STOCK_SEEDS
    ]
    seconds = [stop - start for start, stop in pairwise(ends)]
    results.put((seconds, [[epoch[name] for name in LOSSES] for epoch in compared]))


def work_of_a_step(case: Case) -> tuple[float, float]:
    """Floating-point operations of all members' matmuls and convolutions, and bytes of all passes
    over their weights.
    """
    network = case.member_network()
    with FlopCounterMode(display=False) as counter:
        network(torch.zeros(case.batch_size, *case.input_shape)).sum().backward()
    weights = sum(parameter.numel() for parameter in network.parameters())
    moved = weights * 4 * PASSES_OVER_WEIGHTS
    return case.members * counter.get_total_flops(), case.members * moved


def peak_matmul(threads: int) -> float:
    """Operations per second of the fastest matmul."""
    torch.set_num_threads(threads)
    size = 4096
    a, b, c = (torch.ones(size, size) for _ in range(3))
    return 2 * size**3 / best_of(3, lambda repeat: torch.mm(a, b, out=c))


def peak_stream(threads: int) -> float:
    """Bytes per second of two reads and a write."""
    torch.set_num_threads(threads)
    a, b, c = (torch.ones(800_000_000 // 12) for _ in range(3))
    return 3 * a.nbytes / best_of(5, lambda repeat: torch.add(a, b, out=c))


def compare(case: Case, ours: Iterable[Measured], bandwidth: float) -> str:
    """Print both sides of a case; returns its conclusion."""
    peer = min((run_stock(case, threads) for threads in THREADS), key=lambda side: side.seconds)
    best = min(ours, key=lambda side: side.seconds)
    operations, moved = work_of_a_step(case)
    print(f"\n{case.name}; {case.steps} steps an epoch")
    sides = {f"stock, from {len(STOCK_SEEDS)} members": peer, "packed": best}
    for name, side in sides.items():
        rate = case.steps / side.seconds
        print(
            f"    {name:24s}{1e3 / rate:9.2f} ms/step of all members with {side.threads} "
            f"thread(s){side.note}, {operations * rate / 1e9:6.1f} GFLOP/s, "
            f"{moved * rate / 1e9:5.1f} GB/s; train loss {side.train_loss:.3f}, val soft NLL "
            f"{side.val_soft_nll:.3f}"
        )
    near = (
        f", {moved * case.steps / best.seconds / bandwidth:.0%} of the measured bandwidth"
        if "3,072" in case.name
        else ""
    )
    ratio = peer.seconds / best.seconds
    return (
        f"{case.name}: {ratio:.1f}x stock Lightning run by run{near} (target "
        f"{case.target:g}x): {verdict(ratio >= case.target)}"
    )


def silence() -> None:
    """Without what Lightning says of itself."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")


def measure() -> None:
    """Print the machine's limits, every case, and what they come to."""
    silence()
    bandwidth = {threads: peak_stream(threads) for threads in THREADS}
    limits = (
        f"{t} thread(s) {peak_matmul(t) / 1e9:.0f} GFLOP/s, {bandwidth[t] / 1e9:.1f} GB/s"
        for t in THREADS
    )
    print(f"physical limits: {'; '.join(limits)}")
    conclusions = []
    for case in CASES:
        ours = [*(run_pack(case, t) for t in THREADS), run_packs_side_by_side(case)]
        conclusions.append(compare(case, ours, max(bandwidth.values())))
    print("\n" + "\n".join(conclusions))


if __name__ == "__main__":
    with_idle_threads_asleep(measure)
