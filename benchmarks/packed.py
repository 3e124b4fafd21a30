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

    python benchmarks/packed.py        about 3 minutes, 2 GB

The physical limits are the fastest float32 matmul (4,096 x 4,096) and the fastest stream (c = a + b
over 800 MB) of this run. A step is counted as its matmuls and convolutions, and as nine passes over
the weights: one of the forward pass, one that writes gradients, seven of Adam. Where the weights
stay in the processor's cache, the second figure may lie above the bandwidth of memory.
"""

import logging
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from math import prod
from time import perf_counter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from lightning import Callback, LightningModule, Trainer
from measure import SPAWN, best_of, verdict, with_idle_threads_asleep
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

from datamodules.vote_datamodule import Corpus, VoteDataModule
from datamodules.votes.delivery import Multipass, SoftLabels
from datamodules.votes.table import VoteTable
from lightning_modules.classifier import AnnotatorClassifier
from lightning_modules.networks import DeeperFFN, LeNet, MLPHead, SimpleFFN
from lightning_modules.networks.network import Network
from lightning_modules.packed.pack_member import Member
from lightning_modules.packed.packed_classifier import PackedClassifier

EPOCHS, VAL_ITEMS, VOTES = 4, 500, 20
RATE = 1e-3
SEEDS = (0, 1, 2)
STOCK_SEEDS = SEEDS[:2]
THREADS = (1, 2)
CORES = 2
PASSES_OVER_WEIGHTS = 9
QUIET: dict[str, Any] = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


@dataclass(frozen=True)
class Case:
    name: str
    network: type[Network]
    input_shape: tuple[int, ...]
    num_classes: int
    batch_size: int
    rates: tuple[float, ...]
    target: float
    items: int = 2_000
    seeds: tuple[int, ...] = SEEDS

    @property
    def steps(self) -> int:
        return -(-self.items // self.batch_size)

    @property
    def members(self) -> int:
        return len(self.seeds) * len(self.options())

    def options(self) -> list[tuple[Any, float, float]]:
        """Delivery, learning rate and weight decay of the members of one seed, which share their
        batches; the first is what the peer runs.
        """
        return list(product((SoftLabels(), Multipass()), self.rates, (0.0, 1e-4)))

    def member_network(self) -> Network:
        return self.network(self.input_shape, self.num_classes)  # pyright: ignore[reportCallIssue]


HEAD_RATES, IMAGE_RATES = (RATE, 3e-4, 3e-3), (RATE, 3e-3)
CASES = [
    Case("36 MLP heads, 384 inputs, batch 8", MLPHead, (384,), 3, 8, HEAD_RATES, 10, items=1_000),
    Case("36 MLP heads, 384 inputs, batch 32", MLPHead, (384,), 3, 32, HEAD_RATES, 10),
    Case("36 MLP heads, 3,072 inputs, batch 32", MLPHead, (3072,), 3, 32, HEAD_RATES, 2, items=640),
    Case("24 SimpleFFN, 784 inputs, batch 64", SimpleFFN, (1, 28, 28), 10, 64, IMAGE_RATES, 4),
    Case("24 DeeperFFN, 784 inputs, batch 64", DeeperFFN, (1, 28, 28), 10, 64, IMAGE_RATES, 4),
    Case("24 LeNet, 1 x 28 x 28, batch 64", LeNet, (1, 28, 28), 10, 64, IMAGE_RATES, 2),
]


class SyntheticItems(VoteDataModule):
    """Normal inputs and votes that depend on them, so that there is something to learn."""

    def __init__(self, case: Case, **kwargs):
        super().__init__(**kwargs)
        self.input_shape, self.num_classes, self.items = (
            case.input_shape,
            case.num_classes,
            case.items,
        )

    def load(self) -> Corpus:
        rng = np.random.default_rng(self.seed)
        size = prod(self.input_shape)
        inputs = rng.normal(size=(self.items + VAL_ITEMS, size))
        chance = np.exp(inputs @ rng.normal(size=(size, self.num_classes)) * 2 / size**0.5)
        votes = VoteTable(rng.multinomial(VOTES, chance / chance.sum(1, keepdims=True)))
        rows = np.arange(len(inputs))
        splits = {
            "train": rows[: self.items],
            "val": rows[self.items :],
            "test": rows[self.items :],
        }
        return Corpus(
            torch.from_numpy(inputs).float().reshape(-1, *self.input_shape), votes, splits
        )


def items_of(case: Case, seed: int) -> SyntheticItems:
    data = SyntheticItems(case, batch_size=case.batch_size, seed=seed)
    data.setup()
    return data


@dataclass
class Measured:
    """One side of a comparison: seconds for an epoch of all members, with which threads, and what
    the peer's members ended with.
    """

    seconds: float
    threads: int
    train_loss: float
    val_soft_nll: float
    note: str = ""


class StockClassifier(LightningModule):
    """As plain as a LightningModule can be."""

    def __init__(self, network: Network):
        super().__init__()
        self.network = network

    def training_step(self, batch, batch_idx: int):
        inputs, targets = batch
        loss = F.cross_entropy(self.network(inputs), targets)
        self.log("train/loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx: int) -> None:
        inputs, targets = batch
        self.log("val/soft_nll", F.cross_entropy(self.network(inputs), targets))

    def configure_optimizers(self):
        return torch.optim.Adam(self.network.parameters(), lr=RATE)


class EpochTimes(Callback):
    """Seconds of every epoch, validation included."""

    def __init__(self):
        self.seconds = []

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        self._start = perf_counter()

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        self.seconds.append(perf_counter() - self._start)


def run_stock(case: Case, threads: int) -> Measured:
    torch.set_num_threads(threads)
    seconds, ends = [], []
    for seed in STOCK_SEEDS:
        data = items_of(case, seed)
        assert data.corpus is not None
        inputs, targets = data.corpus.inputs, data.annotator_probs
        assert isinstance(inputs, torch.Tensor)
        train = DataLoader(
            TensorDataset(inputs[: case.items], targets[: case.items]),
            case.batch_size,
            shuffle=True,
        )
        val = DataLoader(TensorDataset(inputs[case.items :], targets[case.items :]), VAL_ITEMS)
        torch.manual_seed(seed)
        times = EpochTimes()
        trainer = Trainer(
            max_epochs=EPOCHS, accelerator="cpu", devices=1, callbacks=[times], **QUIET
        )
        trainer.fit(StockClassifier(case.member_network()), train, val)
        seconds += times.seconds[1:]
        ends.append(
            [trainer.callback_metrics[name].item() for name in ("train/loss", "val/soft_nll")]
        )
    return Measured(min(seconds) * case.members, threads, *np.mean(ends, 0).tolist())


def classifier_of(
    case: Case, seed: int, rate: float = RATE, weight_decay: float = 0.0
) -> AnnotatorClassifier:
    optimizer = partial(torch.optim.Adam, lr=rate, weight_decay=weight_decay)
    return AnnotatorClassifier(
        case.input_shape, case.num_classes, case.network, optimizer, seed=seed
    )  # pyright: ignore[reportArgumentType]


def run_pack(case: Case, threads: int) -> Measured:
    torch.set_num_threads(threads)
    members = []
    for seed in case.seeds:
        data = items_of(case, seed)
        for delivery, rate, weight_decay in case.options():
            members.append(
                Member(
                    classifier_of(case, seed, rate, weight_decay),
                    data,
                    data.bind(delivery, None),
                    EPOCHS,
                )
            )
    ends = []
    PackedClassifier(members).fit(lambda pack: ends.append(perf_counter()))
    last = [members[n * len(case.options())].history[-1] for n in range(len(STOCK_SEEDS))]
    train_loss, val_soft_nll = (
        float(np.mean([epoch[name] for epoch in last])) for name in ("train/loss", "val/soft_nll")
    )
    return Measured(
        min(stop - start for start, stop in pairwise(ends)), threads, train_loss, val_soft_nll
    )


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
    torch.set_num_threads(1)
    every = [(seed, *options) for seed in case.seeds for options in case.options()]
    mine = every[part * len(every) // CORES : (part + 1) * len(every) // CORES]
    shared = {seed: items_of(case, seed) for seed, *_ in mine}
    members = [
        Member(
            classifier_of(case, seed, rate, decay),
            shared[seed],
            shared[seed].bind(delivery, None),
            EPOCHS,
        )
        for seed, delivery, rate, decay in mine
    ]
    ends = []

    def after_epoch(pack: PackedClassifier) -> None:
        barrier.wait()
        ends.append(perf_counter())

    PackedClassifier(members).fit(after_epoch)
    first = case.options()[0]
    compared = [
        m.history[-1]
        for m, spec in zip(members, mine, strict=True)
        if spec[1:] == first and spec[0] in STOCK_SEEDS
    ]
    results.put(
        (
            [stop - start for start, stop in pairwise(ends)],
            [[epoch[n] for n in ("train/loss", "val/soft_nll")] for epoch in compared],
        )
    )


def work_of_a_step(case: Case) -> tuple[float, float]:
    """Floating-point operations of all members' matmuls and convolutions, and bytes of all passes
    over their weights.
    """
    network = case.member_network()
    with FlopCounterMode(display=False) as counter:
        network(torch.zeros(case.batch_size, *case.input_shape)).sum().backward()
    weights = sum(parameter.numel() for parameter in network.parameters())
    return (
        case.members * counter.get_total_flops(),
        case.members * weights * 4 * PASSES_OVER_WEIGHTS,
    )


def peak_matmul(threads: int) -> float:
    """Operations per second."""
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
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")


def measure() -> None:
    silence()
    bandwidth = {threads: peak_stream(threads) for threads in THREADS}
    print("physical limits: ", end="")
    print(
        "; ".join(
            f"{t} thread(s) {peak_matmul(t) / 1e9:.0f} GFLOP/s, {bandwidth[t] / 1e9:.1f} GB/s"
            for t in THREADS
        )
    )
    conclusions = [
        compare(
            case,
            [*(run_pack(case, t) for t in THREADS), run_packs_side_by_side(case)],
            max(bandwidth.values()),
        )
        for case in CASES
    ]
    print("\n" + "\n".join(conclusions))


if __name__ == "__main__":
    with_idle_threads_asleep(measure)
