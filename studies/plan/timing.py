"""What a study will cost on the device at hand, from a short run of its own steps: measured where
`studies.plan.cost` only estimates.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from callbacks.hessian.hessian_product import HessianProduct
from callbacks.hessian_spectrum import HessianSpectrum
from datamodules import VoteDataModule
from experiment.build import build_classifier, build_data, class_of
from lightning_modules import AnnotatorClassifier
from lightning_modules.threads import forward_flops
from studies.plan.comparable_runs import items_of
from studies.plan.cost import in_words, training_batches
from studies.plan.study import Run

WARM_UP = 1  # step that is not timed: kernels are chosen and memory is taken in it
# Hessian-vector products of a run over its test items and those of high disagreement, about as many
# as were counted on CIFAR-10H
PRODUCTS = 60
SUSTAINED = 1e13  # float32 operations per second at which hours of another device are told


@dataclass(frozen=True)
class Calibration:
    """The seconds that runs of one shape take, and the arithmetic behind them."""

    network: str
    device: str
    runs: int
    step: float  # seconds per training step
    evaluation: float  # per item
    product: float  # per item of a Hessian-vector product
    steps: int  # of all runs
    evaluated: int  # items that all runs evaluate: after epochs, in their tests, and in predict
    differentiated: int  # items of all Hessian-vector products of all runs
    flops: float  # of the training of all runs

    @property
    def hours(self) -> float:
        """Of all runs, one after the other."""
        training, evaluation = self.steps * self.step, self.evaluated * self.evaluation
        return (training + evaluation + self.differentiated * self.product) / 3600

    @property
    def sentence(self) -> str:
        """What was measured, and what follows from it, for a reader."""
        elsewhere = 1.2 * self.flops / SUSTAINED / 3600  # a fifth more for evaluation and probes
        return (
            f"{self.network} on {self.device}: {1000 * self.step:.1f} ms a step, {self.steps:,} "
            f"steps of {self.runs} runs one after the other: {in_words(3600 * self.hours)}. "
            f"Their training is {self.flops:.2g} floating-point operations: a device that sustains "
            f"{SUSTAINED / 1e12:g} TFLOP/s would take about {in_words(3600 * elsewhere)} (by "
            "arithmetic, not measured)."
        )


def calibrate(runs: list[Run], predict: bool, steps: int = 4) -> list[Calibration]:
    """Time some steps of each shape of run among these, alone on the first device that there is, as
    Lightning would choose it.
    """
    shapes: dict[str, list[Run]] = {}
    for run in runs:
        batch_size = run.config["data"]["init_args"].get("batch_size")
        precision = run.config["trainer"].get("precision")
        shape = (run.config["model"]["network"], items_of(run), batch_size, precision)
        shapes.setdefault(json.dumps(shape, sort_keys=True), []).append(run)
    return [_measure(members, predict, steps) for members in shapes.values()]


def _measure(runs: list[Run], predict: bool, steps: int) -> Calibration:
    config = runs[0].config
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = build_data(config)
    assert data.corpus is not None
    classifier = build_classifier(config, data).to(device)
    train, val, test = (len(data.rows(split)) for split in ("train", "val", "test"))
    epochs = [run.config["trainer"]["max_epochs"] for run in runs]
    batches = [training_batches(run.config, train) for run in runs]
    steps_of_all = sum(e * b for e, b in zip(epochs, batches, strict=True))
    callbacks = [entry for run in runs for entry in run.config["trainer"].get("callbacks") or []]
    probes = [entry for entry in callbacks if issubclass(class_of(entry), HessianSpectrum)]
    most = [entry.get("init_args", {}).get("most_items") or test for entry in probes]
    probed = sum(min(items, test) for items in most)
    tested = len(runs) * (test + predict * len(data.annotator_probs))
    name = f"this CPU, {torch.get_num_threads()} thread(s)"
    if device.type == "cuda":
        name = torch.cuda.get_device_name()
    in_bfloat16 = config["trainer"].get("precision") == "bf16-mixed"
    step = _seconds(_training_step(classifier, data, device, in_bfloat16), steps, device)
    evaluation = _seconds(_evaluation_step(classifier, data, device), steps, device)
    product = _seconds(_hessian_step(classifier, data, device), 1, device) if probed else 0.0
    forward = forward_flops(classifier.network, data.input_shape)
    return Calibration(
        network=type(classifier.network).__name__,
        device=name,
        runs=len(runs),
        step=step,
        evaluation=evaluation / data.batch_size,
        product=product / data.batch_size,
        steps=steps_of_all,
        evaluated=sum(epochs) * val + tested,
        differentiated=probed * PRODUCTS // 2,  # half of the products are over the small slice
        flops=3 * forward * data.batch_size * steps_of_all,
    )


def _training_step(
    classifier: AnnotatorClassifier, data: VoteDataModule, device: torch.device, in_bfloat16: bool
) -> Callable[[], Any]:
    inputs, targets = _batch(classifier, data, device)
    network = classifier.network.train()
    optimizer = classifier.optimizer(network.parameters())

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=in_bfloat16):
            loss = F.cross_entropy(network(inputs), targets)
        loss.backward()
        optimizer.step()

    return step


def _evaluation_step(
    classifier: AnnotatorClassifier, data: VoteDataModule, device: torch.device
) -> Callable[[], Any]:
    inputs, _ = _batch(classifier, data, device)
    network: nn.Module = classifier.network

    def step() -> None:
        network.eval()
        with torch.no_grad():
            network(inputs)

    return step


def _hessian_step(
    classifier: AnnotatorClassifier, data: VoteDataModule, device: torch.device
) -> Callable[[], Any]:
    batch = _batch(classifier, data, device)
    classifier.eval()
    product = HessianProduct(classifier, lambda: iter([batch]))
    direction = torch.ones(product.size, device=device)
    return lambda: product(direction)


def _batch(
    classifier: AnnotatorClassifier, data: VoteDataModule, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    batch = next(data.evaluation_batches(data.rows("train"), device))
    return classifier.prepared(batch.inputs), batch.targets


def _seconds(step: Callable[[], Any], steps: int, device: torch.device) -> float:
    """The mean duration of a step after some that are not counted."""
    for _ in range(WARM_UP):
        step()
    _wait(device)
    start = time.perf_counter()
    for _ in range(steps):
        step()
    _wait(device)
    return (time.perf_counter() - start) / steps


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
