"""Eight OOD scores from one pass over each dataset, against pytorch-ood.

A narrow ResNet-18 (width 8, channels_last, untrained) sees 1,000 training, 2,000 test and 2,000 OOD
images, all synthetic, in batches of 128. OODScores is timed from the stored bytes to its metrics
and figure. The peer is fed by the same loaders, in the memory format of the network, in eval mode
and without gradients, and timed to the metrics of its own OODMetrics. In the form that a careful
user gives it, features are computed once, and all detectors are fitted to them and score them at
once; its k-nearest neighbours get one core, as all the rest. Run as its examples do, each detector
makes its own passes. The logit margin, which pytorch-ood does not have, is a detector of four lines
in its interface.

    python -m benchmarks ood        about a minute
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from pytorch_ood import detector as peer
from pytorch_ood.api import LogitsDetector
from pytorch_ood.metrics import OODMetrics
from torch import Tensor

from benchmarks.measure import alternate
from benchmarks.row import Row, main
from callbacks import OODScores
from callbacks.ood.passes import foreign_loader
from callbacks.ood_scores import SCORES
from datamodules import VoteDataModule
from datamodules.io.ood_sets import read_cifar
from datamodules.vote_datamodule import Corpus
from datamodules.votes.table import VoteTable
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import ResNet18
from lightning_modules.networks.network import Network

TRAIN, TEST, OUTSIDE, K, DIMENSIONS = 1_000, 2_000, 2_000, 50, 32
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
RNG = np.random.default_rng(0)


class Images(VoteDataModule):
    """Synthetic images with synthetic votes."""

    num_classes, input_shape = 10, (3, 32, 32)

    def load(self) -> Corpus:
        """Training items first, then the test items."""
        counts = RNG.multinomial(50, np.eye(10)[np.arange(TRAIN + TEST) % 10] * 0.7 + 0.03)
        images = torch.from_numpy(RNG.integers(256, size=(TRAIN + TEST, 3, 32, 32), dtype=np.uint8))
        test = np.arange(TRAIN, TRAIN + TEST)
        return Corpus(
            images,
            VoteTable(counts),
            {"train": np.arange(TRAIN), "val": test, "test": test},
            MEAN,
            STD,
            scale=255,
        )


class Margin(LogitsDetector):
    """The one score that pytorch-ood lacks, written as its users would."""

    def __init__(self, model):
        self.model = model

    def predict_logits(self, logits: Tensor) -> Tensor:
        """Minus the difference between the two largest logits."""
        first, second = logits.topk(2).values.unbind(-1)
        return second - first


class Labelled:
    """A loader's batches with labels, as pytorch-ood wants them: class numbers, -1 for OOD."""

    def __init__(self, loader: Iterable[tuple[Tensor, Tensor]], labels: Tensor):
        self.loader, self.labels = loader, labels

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for inputs, index in self.loader:
            yield inputs.to(memory_format=torch.channels_last), self.labels[index]


def detectors(network: Network) -> list:
    """The seven detectors that need no gradients."""
    nearest = peer.KNN(network.features, k=K)
    nearest.knn.n_jobs = 1
    return [
        *(kind(network) for kind in (peer.MaxSoftmax, peer.EnergyBased, peer.Entropy, Margin)),
        nearest,
        peer.Mahalanobis(network.features),
        peer.ViM(network.features, DIMENSIONS, network.head.weight, network.head.bias),  # pyright: ignore[reportArgumentType]
    ]


@torch.no_grad()
def one_by_one(network: Network, train: Labelled, tests: list[Labelled]) -> None:
    """Every detector goes through the images by itself."""
    for detector in detectors(network):
        metrics = OODMetrics()
        detector.to("cpu")
        if detector.requires_fit:
            detector.fit(train)
        for inputs, labels in chain(*tests):
            metrics.update(detector(inputs), labels)
        metrics.compute()


@torch.no_grad()
def from_features(network: Network, train: Labelled, tests: list[Labelled]) -> None:
    """Features are computed once, and every detector scores all of them at once."""

    def features(batches: Iterable) -> tuple[Tensor, Tensor]:
        pairs = [(network.features(inputs), labels) for inputs, labels in batches]
        return torch.cat([pair[0] for pair in pairs]), torch.cat([pair[1] for pair in pairs])

    known, (unknown, labels) = features(train), features(chain(*tests))
    logits = network.head(unknown)
    for detector in detectors(network):
        metrics = OODMetrics()
        if isinstance(detector, LogitsDetector):
            metrics.update(detector.predict_logits(logits), labels)
        else:
            metrics.update(detector.fit_features(*known).predict_features(unknown), labels)
        metrics.compute()


def odin(network: Network, tests: list[Labelled]) -> None:
    """The peer's ODIN, which needs gradients of its own."""
    detector, metrics = peer.ODIN(network, norm_std=list(STD)).to("cpu"), OODMetrics()
    for inputs, labels in chain(*tests):
        metrics.update(detector(inputs), labels)
    metrics.compute()


def rows() -> Iterator[Row]:
    """Time all sides on one network."""
    make = partial(ResNet18, width=8)
    classifier = AnnotatorClassifier((3, 32, 32), 10, make, channels_last=True).eval()
    network, data = classifier.network, Images(batch_size=128)
    data.setup()
    records = RNG.integers(256, size=(OUTSIDE, 3073), dtype=np.uint8)
    records[:, 0] = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outside.bin"
        records.tofile(path)
        loaders = [data.loader(data.rows(split), training=False) for split in ("train", "test")]
        loaders.append(foreign_loader(read_cifar(path), data))
        labels, foreign = data.annotator_probs.argmax(-1), torch.full((OUTSIDE,), -1)
        train = Labelled(loaders[0], labels)
        tests = [Labelled(loaders[1], labels), Labelled(loaders[2], foreign)]

        def ours(*left_out: str) -> None:
            scores = [score for score in SCORES if score not in left_out]
            OODScores({"outside": str(path)}, scores=scores, k=K).run(classifier, data)

        @torch.no_grad()
        def plain_passes() -> None:
            for inputs, _ in chain(train, *tests):
                network(inputs)

        sides: dict[str, Callable[[], object]] = {
            "seven": partial(ours, "odin"),
            "eight": ours,
            "passes": plain_passes,
            "from features": lambda: from_features(network, train, tests),
            "one by one": lambda: one_by_one(network, train, tests),
            "odin": lambda: odin(network, tests),
        }
        seconds = alternate(2, sides)
    what = f"{{}} OOD scores of {TEST + OUTSIDE:,} images"
    seven, eight = seconds["seven"], seconds["eight"]
    peer_name = "pytorch-ood, {}"
    for name, limit in (("from features", 1.0), ("one by one", None)):
        theirs, said = seconds[name], peer_name.format(name)
        yield Row(what.format("seven"), said, seven, theirs, limit)
        yield Row(what.format("eight"), f"{said}, ODIN", eight, theirs + seconds["odin"], limit)
    note = "wanted: at most 1.2 times the passes"
    passes = seconds["passes"]
    yield Row(what.format("seven"), "the forward passes alone", seven, passes, 1 / 1.2, note)


if __name__ == "__main__":
    main(rows)
