"""The share of a training epoch that delivery and loading take, for the smallest network on the
smallest images, where it weighs most.

SimpleFFN on the digits, batch 64, Adam, in Lightning's own loop; no logger, checkpoints, progress
bar or validation, all of which would only lengthen the epoch. Time inside the loader's iteration
and inside `on_after_batch_transfer` (with `targets(epoch)`) counts as delivery and loading. The
peer is torch's DataLoader over a TensorDataset of inputs that are standardised already, without
workers, in the same datamodule. One thread: a step this small gains nothing from a second, and
waiting for one that other work holds up would decide the result.

    python -m benchmarks loading_share        about 20 seconds

Wanted: under 5 % of the epoch.
"""

import logging
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

from lightning import Callback, Trainer
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.row import Row, main
from datamodules.datasets.digits import Digits
from datamodules.loading import TensorLoader
from datamodules.votes.delivery import BoundDelivery, Delivery, Multipass, StochasticLabelSampling
from lightning_modules.classifier import AnnotatorClassifier
from lightning_modules.networks import SimpleFFN

EPOCHS, WARM_UP = 16, 4


class Stopwatch(Callback):
    """Adds up seconds by name, and keeps one such record per epoch."""

    def __init__(self):
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.epochs: list[dict[str, float]] = []

    def time(self, name: str, work: Callable[..., Any], *args) -> Any:
        """Do some work, and add its seconds to those of its name."""
        start = perf_counter()
        try:
            return work(*args)
        finally:
            self.seconds[name] += perf_counter() - start

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        """Start the epoch's clock."""
        self.seconds.clear()
        self._start = perf_counter()

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        """Keep the epoch's record."""
        self.epochs.append({**self.seconds, "total": perf_counter() - self._start})


class TimedIteration:
    """Before a loader among the base classes: times each step of its iteration."""

    watch: Stopwatch

    def __iter__(self) -> Iterator:
        batches, end = super().__iter__(), object()  # pyright: ignore[reportAttributeAccessIssue]
        while (batch := self.watch.time("loader", next, batches, end)) is not end:
            yield batch


class TimedTensorLoader(TimedIteration, TensorLoader):
    """This project's loader, timed."""


class TimedDataLoader(TimedIteration, DataLoader):
    """torch's loader, timed."""


class TimedDigits(Digits):
    """The digits with a stopwatch; `stock` feeds them through torch's DataLoader instead."""

    def __init__(self, watch: Stopwatch, stock: bool, **kwargs):
        super().__init__(**kwargs)
        self.watch, self.stock = watch, stock

    def bind(self, delivery: Delivery, votes_per_item: int | None, **others) -> BoundDelivery:
        """Have an epoch's targets timed."""
        bound = super().bind(delivery, votes_per_item, **others)
        bound.targets = partial(self.watch.time, "targets", bound.targets)  # pyright: ignore[reportAttributeAccessIssue]
        return bound

    def train_dataloader(self) -> Any:
        """The digits' own loader or torch's, timed."""
        plain = super().train_dataloader()
        assert isinstance(plain, TensorLoader)
        rows = plain.sampler.items
        if self.stock:
            dataset = TensorDataset(plain.prepare(rows, 0), rows)
            loader = TimedDataLoader(dataset, self.batch_size, shuffle=True)
        else:
            loader = TimedTensorLoader(plain.prepare, plain.sampler)
        loader.watch = self.watch
        return loader

    def on_after_batch_transfer(self, batch, dataloader_idx: int):
        """Have it timed that targets join their inputs."""
        return self.watch.time("attachment", super().on_after_batch_transfer, batch, dataloader_idx)


def measure(delivery: Delivery, stock: bool) -> dict[str, float]:
    """Milliseconds per step by name, and the share of delivery and loading: the median epoch after
    warming up.
    """
    watch = Stopwatch()
    data = TimedDigits(watch, stock, delivery=delivery, batch_size=64)
    model = AnnotatorClassifier(data.input_shape, data.num_classes, SimpleFFN)
    trainer = Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        devices=1,
        limit_val_batches=0,
        logger=False,
        callbacks=[watch],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    trainer.fit(model, datamodule=data)
    epochs, steps = watch.epochs[WARM_UP:], trainer.num_training_batches
    per_step = {
        name: 1e3 * median(epoch[name] for epoch in epochs) / steps
        for name in ("total", "loader", "attachment", "targets")
    }
    shares = [(epoch["loader"] + epoch["attachment"]) / epoch["total"] for epoch in epochs]
    return per_step | {"share": median(shares)}


def rows() -> Iterator[Row]:
    """Milliseconds of delivery and loading in a step, ours and with torch's loader."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    for delivery in (StochasticLabelSampling(), Multipass()):
        ours, peer = (measure(delivery, stock) for stock in (False, True))
        what = f"{type(delivery).__name__}: delivery and loading in a step of SimpleFFN"
        note = f"{ours['share']:.1%} of the epoch; with the peer {peer['share']:.1%}"
        whole = ours["total"]
        yield Row(what, "5 % of the whole step", fed(ours), 0.05 * whole, 1.0, note, unit="ms")
        yield Row(what, "DataLoader(TensorDataset)", fed(ours), fed(peer), 1.0, unit="ms")


def fed(step: dict[str, float]) -> float:
    """Milliseconds of a step that go into delivery and loading."""
    return step["loader"] + step["attachment"]


if __name__ == "__main__":
    main(rows)
