"""Trainings of two whole studies as `study run` does them, against stock Lightning with as many
processes as we use.

- epistemic.yaml: the grid of "Soft-Label Training Preserves Epistemic Uncertainty", 24 MLP heads a
  dataset and batch size (learning rate x weight decay x scheduler x two kinds of labels), 20
  epochs. One batch size of each of its three datasets is measured.
- human_uncertainty.yaml: three networks on 28 x 28 images, 24 members each (four kinds of labels,
  six seeds), 60 epochs.

Items are synthetic, of the studies' numbers and sizes. Two processes of one thread each train half
of the members as a pack; then each trains one member after the other by `Trainer.fit` of a bare
LightningModule over DataLoader(TensorDataset, shuffle=True), validated in a single batch, without
logger, checkpoints or progress bar. Both sides see the same batches and validation. Epochs are
measured after one that warms up; the fastest counts, and is carried on to all epochs and members,
none stopped early. Start, tests and results are on neither side.

    python -m benchmarks trainings        about a minute, 1 GB
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from time import perf_counter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from lightning import Callback, LightningModule, Trainer
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.measure import SPAWN
from benchmarks.row import Row, main
from datamodules.vote_datamodule import Corpus, VoteDataModule
from datamodules.votes.delivery import Multipass, SoftLabels
from datamodules.votes.table import VoteTable
from lightning_modules.classifier import AnnotatorClassifier
from lightning_modules.networks import DeeperFFN, LeNet, MLPHead, SimpleFFN
from lightning_modules.packed.pack_member import Member
from lightning_modules.packed.packed_classifier import PackedClassifier

PROCESSES, MEMBERS, EPOCHS, VAL_ITEMS = 2, 24, 3, 500


@dataclass(frozen=True)
class Case:
    """The members of a study that share network, data and batch size."""

    study: str
    name: str
    network: Any
    input_shape: tuple[int, ...]
    num_classes: int
    items: int
    batch_size: int
    epochs: int


IMAGES = (1, 28, 28)
CASES = [
    Case("epistemic", "ChaosNLI, batch 8", MLPHead, (384,), 3, 2_200, 8, 20),
    Case("epistemic", "POPQUORN, batch 16", MLPHead, (384,), 5, 2_600, 16, 20),
    Case("epistemic", "CIFAR-10H-Hard, batch 32", MLPHead, (1_280,), 10, 770, 32, 20),
    *(
        Case("human_uncertainty", network.__name__, network, IMAGES, 11, 2_131, 64, 60)
        for network in (SimpleFFN, DeeperFFN, LeNet)
    ),
]


class Synthetic(VoteDataModule):
    """Normal inputs and random votes: training items first, then those of validation."""

    def __init__(self, case: Case, seed: int):
        super().__init__(batch_size=case.batch_size, seed=seed)
        self.input_shape, self.num_classes = case.input_shape, case.num_classes
        self.items = case.items

    def load(self) -> Corpus:
        """Test items are those of validation."""
        rng, rows = np.random.default_rng(self.seed), np.arange(self.items + VAL_ITEMS)
        inputs = rng.standard_normal((len(rows), prod(self.input_shape)), np.float32)
        votes = rng.multinomial(20, np.full(self.num_classes, 1 / self.num_classes), len(rows))
        train, val = rows[: self.items], rows[self.items :]
        shaped = torch.from_numpy(inputs).reshape(-1, *self.input_shape)
        return Corpus(shaped, VoteTable(votes), {"train": train, "val": val, "test": val})


class Stock(LightningModule):
    """As plain as a LightningModule can be."""

    def __init__(self, case: Case):
        super().__init__()
        self.network = case.network(case.input_shape, case.num_classes)

    def training_step(self, batch, batch_idx: int):
        """Cross-entropy of a batch."""
        loss = F.cross_entropy(self.network(batch[0]), batch[1])
        self.log("train/loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx: int) -> None:
        """Log the soft NLL."""
        self.log("val/soft_nll", F.cross_entropy(self.network(batch[0]), batch[1]))

    def configure_optimizers(self):
        """Adam, as the members have it."""
        return torch.optim.Adam(self.network.parameters(), lr=1e-3)


class AfterEpoch(Callback):
    """Calls a function after every epoch, validation included."""

    def __init__(self, work: Callable[[], None]):
        self.work = work

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        """Call it."""
        self.work()


def pack(case: Case, number: int, after_epoch: Callable[[], None]) -> None:
    """Train this process's half of the members as one."""
    half = MEMBERS // PROCESSES
    data = {seed: Synthetic(case, seed) for seed in {4 * number + n // 4 for n in range(half)}}
    members = []
    for n, (seed, each) in enumerate(sorted(data.items()) * (half // len(data))):
        each.setup()
        optimizer = partial(torch.optim.Adam, lr=1e-3 / (1 + n % 3))
        shape, classes = case.input_shape, case.num_classes
        classifier = AnnotatorClassifier(shape, classes, case.network, optimizer, seed=seed)
        bound = each.bind((SoftLabels(), Multipass())[n % 2], None)
        members.append(Member(classifier, each, bound, EPOCHS))
    PackedClassifier(members).fit(lambda pack: after_epoch())


def stock(case: Case, number: int, after_epoch: Callable[[], None]) -> None:
    """Train one member by stock Lightning."""
    data = Synthetic(case, number)
    data.setup()
    assert data.corpus is not None
    inputs, targets = data.corpus.inputs, data.annotator_probs
    assert isinstance(inputs, torch.Tensor)
    train, val = (
        TensorDataset(inputs[rows], targets[rows]) for rows in map(data.rows, ("train", "val"))
    )
    trainer = Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        devices=1,
        callbacks=[AfterEpoch(after_epoch)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loaders = DataLoader(train, case.batch_size, shuffle=True), DataLoader(val, VAL_ITEMS)
    trainer.fit(Stock(case), *loaders)


def work(number: int, barrier, results) -> None:
    """One of the processes: every case by both ways, beside the others."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    found = []
    for case in CASES:
        for way in (pack, stock):
            ends: list[float] = []

            def after_epoch(ends: list[float] = ends) -> None:
                barrier.wait()  # so that an epoch takes as long as that of the slower process
                ends.append(perf_counter())

            way(case, number, after_epoch)
            found.append(min(stop - start for start, stop in pairwise(ends)))
    results.put(found)


def rows() -> Iterator[Row]:
    """All epochs of all members of each case."""
    barrier, results = SPAWN.Barrier(PROCESSES), SPAWN.SimpleQueue()
    processes = [
        SPAWN.Process(target=work, args=(number, barrier, results)) for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    seconds = np.max([results.get() for _ in processes], 0).reshape(-1, 2).tolist()
    for process in processes:
        process.join()
    peer, sums = f"stock Lightning, {PROCESSES} processes", {}
    for case, (ours, theirs) in zip(CASES, seconds, strict=True):
        sides = ours * case.epochs, theirs * case.epochs * MEMBERS / PROCESSES
        yield Row(f"{case.study}: {MEMBERS} members, {case.name}", peer, *sides, None)
        sums[case.study] = np.add(sums.get(case.study, 0.0), sides)
    for study, (ours, theirs) in sums.items():
        yield Row(f"{study}: all of these trainings", peer, float(ours), float(theirs), None)


if __name__ == "__main__":
    main(rows)
