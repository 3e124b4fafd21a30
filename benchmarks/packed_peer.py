"""What benchmarks/packed.py trains, and how stock Lightning does: one member after the other."""

from dataclasses import dataclass
from itertools import product
from math import prod
from time import perf_counter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from lightning import Callback, LightningModule, Trainer
from torch.utils.data import DataLoader, TensorDataset

from datamodules.vote_datamodule import Corpus, VoteDataModule
from datamodules.votes.delivery import Multipass, SoftLabels
from datamodules.votes.table import VoteTable
from lightning_modules.networks import DeeperFFN, LeNet, MLPHead, SimpleFFN
from lightning_modules.networks.network import Network

EPOCHS, VAL_ITEMS, VOTES = 4, 500, 20
RATE = 1e-3
LOSSES = ("train/loss", "val/soft_nll")
SEEDS = (0, 1, 2)
STOCK_SEEDS = SEEDS[:2]
QUIET: dict[str, Any] = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


@dataclass(frozen=True)
class Case:
    """One comparison: a network, its data, and the options that its members differ by."""

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
        """Batches of an epoch."""
        return -(-self.items // self.batch_size)

    @property
    def members(self) -> int:
        """How many networks are trained."""
        return len(self.seeds) * len(self.options())

    def options(self) -> list[tuple[Any, float, float]]:
        """Delivery, learning rate and weight decay of the members of one seed, which share their
        batches; the first is what the peer runs.
        """
        return list(product((SoftLabels(), Multipass()), self.rates, (0.0, 1e-4)))

    def member_network(self) -> Network:
        """The network of one member, with new weights."""
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


@dataclass
class Measured:
    """One side of a comparison: seconds for an epoch of all members, with how many threads, and
    the losses that the members which both sides train ended with.
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
    """Seconds of every epoch, validation included."""

    def __init__(self):
        self.seconds = []

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        """Start the clock."""
        self._start = perf_counter()

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        """Note the epoch's seconds."""
        self.seconds.append(perf_counter() - self._start)


def run_stock(case: Case, threads: int) -> Measured:
    """Train the first member of two seeds, and extrapolate to all members."""
    torch.set_num_threads(threads)
    seconds, ends = [], []
    for seed in STOCK_SEEDS:
        data = items_of(case, seed)
        assert data.corpus is not None
        inputs, targets = data.corpus.inputs, data.annotator_probs
        assert isinstance(inputs, torch.Tensor)
        items = TensorDataset(inputs[: case.items], targets[: case.items])
        train = DataLoader(items, case.batch_size, shuffle=True)
        val = DataLoader(TensorDataset(inputs[case.items :], targets[case.items :]), VAL_ITEMS)
        torch.manual_seed(seed)
        times = EpochTimes()
        trainer = Trainer(
            max_epochs=EPOCHS, accelerator="cpu", devices=1, callbacks=[times], **QUIET
        )
        trainer.fit(StockClassifier(case.member_network()), train, val)
        seconds += times.seconds[1:]
        ends.append([trainer.callback_metrics[name].item() for name in LOSSES])
    return Measured(min(seconds) * case.members, threads, *np.mean(ends, 0).tolist())
