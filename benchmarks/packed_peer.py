"""What benchmarks/packed.py trains, and how it is done one member after the other: by stock
Lightning and by a plain loop.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from lightning import Callback, LightningModule, Trainer
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from core.compat import NVML_CHECK
from datamodules.vote_datamodule import Corpus, VoteDataModule
from datamodules.votes.delivery import Multipass, SoftLabels
from datamodules.votes.table import VoteTable
from lightning_modules.classifier import AnnotatorClassifier
from lightning_modules.networks.network import Network
from lightning_modules.packed.pack_member import Member

VAL_ITEMS, VOTES = 500, 20
RATE = 1e-3
SEEDS = (0, 1, 2)
QUIET: dict[str, Any] = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


@dataclass(frozen=True)
class Case:
    """A network, its data, and the options that its members differ by."""

    name: str
    network: type[Network]
    input_shape: tuple[int, ...]
    num_classes: int
    batch_size: int
    rates: tuple[float, ...]
    items: int = 2_000

    def members(self) -> list[Member]:
        """New ones, seed by seed: those of a seed share their data and differ by delivery, learning
        rate and weight decay.
        """
        members = []
        for seed in SEEDS:
            data = items_of(self, seed)
            for delivery, rate, decay in product(
                (SoftLabels(), Multipass()), self.rates, (0.0, 1e-4)
            ):
                classifier = AnnotatorClassifier(
                    self.input_shape,
                    self.num_classes,
                    self.network,  # pyright: ignore[reportArgumentType]
                    partial(torch.optim.Adam, lr=rate, weight_decay=decay),
                    seed=seed,
                )
                members.append(Member(classifier, data, data.bind(delivery, None), max_epochs=99))
        return members


class SyntheticItems(VoteDataModule):
    """Normal inputs and votes that depend on them, so that there is something to learn."""

    def __init__(self, case: Case, **kwargs):
        super().__init__(**kwargs)
        self.input_shape, self.num_classes = case.input_shape, case.num_classes
        self.items = case.items

    def load(self) -> Corpus:
        """Training items first, then those of validation, which serve as test items too."""
        rng = np.random.default_rng(self.seed)
        size = prod(self.input_shape)
        inputs = rng.normal(size=(self.items + VAL_ITEMS, size))
        chance = np.exp(inputs @ rng.normal(size=(size, self.num_classes)) * 2 / size**0.5)
        votes = VoteTable(rng.multinomial(VOTES, chance / chance.sum(1, keepdims=True)))
        rows = np.arange(len(inputs))
        train, val = rows[: self.items], rows[self.items :]
        images = torch.from_numpy(inputs).float().reshape(-1, *self.input_shape)
        return Corpus(images, votes, {"train": train, "val": val, "test": val})


def items_of(case: Case, seed: int) -> SyntheticItems:
    """The data of one seed, ready to be trained on."""
    data = SyntheticItems(case, batch_size=case.batch_size, seed=seed)
    data.setup()
    return data


class Epoch(NamedTuple):
    """An epoch's training: seconds by the clock and of this process's CPU, and mean losses of the
    members that were trained.
    """

    wall: float
    cpu: float
    losses: Tensor


def timed(train: Callable[[], Tensor]) -> Epoch:
    """Of a function that trains an epoch and gives its losses."""
    wall, cpu = perf_counter(), process_time()
    losses = train()
    return Epoch(perf_counter() - wall, process_time() - cpu, losses)


def epoch_inputs(data: Any, loader: Any, epoch: int) -> tuple[Tensor, Tensor]:
    """A datamodule's training items in the order of an epoch, and that order: the same that the
    members of a pack see, for peers whose losses are compared.
    """
    loader.sampler.set_epoch(epoch)
    order = torch.cat(list(loader.sampler))
    return data.corpus.inputs[order], order


def plain_loop(member: Member, batch_size: int) -> Iterator[Epoch]:
    """Epochs of one member by a plain loop with fused Adam, as fast as one writes it."""
    network = member.classifier.network.train()
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE, fused=True)
    loader = member.data.train_dataloader()

    def train(epoch: int) -> Tensor:
        os.environ[NVML_CHECK] = "0"  # as it is without Lightning
        inputs, order = epoch_inputs(member.data, loader, epoch)
        targets, losses = member.bound.targets(epoch)[order], []
        for seen, wanted in zip(inputs.split(batch_size), targets.split(batch_size), strict=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(network(seen), wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses).mean().double()[None]

    epoch = 0
    while True:
        yield timed(partial(train, epoch))
        epoch += 1


class StockClassifier(LightningModule):
    """As plain as a LightningModule can be."""

    def __init__(self, network: Network):
        super().__init__()
        self.network = network

    def training_step(self, batch, batch_idx: int):
        """Cross-entropy of a batch."""
        inputs, targets = batch
        loss = F.cross_entropy(self.network(inputs), targets)
        self.log("train/loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx: int) -> None:
        """Log the soft NLL."""
        inputs, targets = batch
        self.log("val/soft_nll", F.cross_entropy(self.network(inputs), targets))

    def configure_optimizers(self):
        """Adam at the rate of the first member."""
        return torch.optim.Adam(self.network.parameters(), lr=RATE)


class EpochTimes(Callback):
    """Every epoch's training, as it is measured elsewhere."""

    def __init__(self):
        self.epochs: list[Epoch] = []

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        """Start the clocks."""
        self._start = perf_counter(), process_time()

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        """Stop them."""
        wall, cpu = perf_counter() - self._start[0], process_time() - self._start[1]
        loss = trainer.callback_metrics["train/loss"].double()[None]
        self.epochs.append(Epoch(wall, cpu, loss))


def stock(member: Member, batch_size: int, epochs: int) -> list[Epoch]:
    """Epochs of one member by stock Lightning: torch's DataLoader, `self.log`, no validation."""
    os.environ[NVML_CHECK] = "1"  # as Lightning has it
    rows = member.data.rows("train")
    items = TensorDataset(member.data.corpus.inputs[rows], member.data.annotator_probs[rows])
    times = EpochTimes()
    trainer = Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        devices=1,
        callbacks=[times],
        limit_val_batches=0,
        **QUIET,
    )
    torch.manual_seed(0)
    train = DataLoader(items, batch_size, shuffle=True)
    trainer.fit(StockClassifier(member.classifier.network), train)
    return times.epochs
