"""Eight OOD scores from one pass over each dataset, against pytorch-ood's detectors fitted and
scored one after the other.

A narrow ResNet-18 (width 8, channels_last, untrained) sees 8,000 training, 10,000 test and 10,000
OOD images, all synthetic, in batches of 128. OODScores is timed from the stored bytes to its
metrics and figure. The peer is fed by the same loaders, in the memory format of the network, in
eval mode and without gradients, and timed to the metrics of its own OODMetrics; the logit margin,
which pytorch-ood does not have, is a detector of four lines in its interface. Both sides use the
same number of threads.

    OMP_NUM_THREADS=1 python -m benchmarks.probes.ood        about five minutes on an idle core

Targets: all eight scores at most 1.2 times the plain forward passes plus ODIN's own cost; at least
5 times faster than pytorch-ood without ODIN and 2 times with it.
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

from benchmarks.measure import best_of, verdict
from callbacks import OODScores
from callbacks.ood.detectors import ODIN
from callbacks.ood.passes import foreign_loader
from callbacks.ood_scores import SCORES
from datamodules import VoteDataModule
from datamodules.io.ood_sets import read_cifar
from datamodules.vote_datamodule import Corpus
from datamodules.votes.table import VoteTable
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import ResNet18

TRAIN, TEST, OUTSIDE, ROUNDS, K = 8_000, 10_000, 10_000, 2, 50
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


def run_peer(
    make: Callable, train: Labelled, test: list[Labelled], gradients: bool = False
) -> None:
    """Fit one detector, where it needs that, score all items with it and judge the scores."""
    detector, metrics = make().to("cpu"), OODMetrics()
    with torch.set_grad_enabled(gradients):
        if detector.requires_fit:
            detector.fit(train)
        for inputs, labels in chain(*test):
            metrics.update(detector(inputs), labels)
    metrics.compute()


def measure_jobs(classifier: AnnotatorClassifier, data: Images, path: Path) -> dict[str, float]:
    """Seconds of each job, the best of some rounds: what slows the machine down for a while does
    not fall on one side alone.
    """
    network = classifier.network
    loaders = [data.loader(data.rows(split), training=False) for split in ("train", "test")] + [
        foreign_loader(read_cifar(path), data)
    ]
    labels, foreign = data.annotator_probs.argmax(-1), torch.full((OUTSIDE,), -1)
    train, test = (
        Labelled(loaders[0], labels),
        [Labelled(loaders[1], labels), Labelled(loaders[2], foreign)],
    )
    step = ODIN(1000.0, 0.0014, torch.tensor(STD).reshape(1, 3, 1, 1))

    @torch.no_grad()
    def plain_passes() -> None:
        for loader in loaders:
            for inputs, _ in loader:
                classifier(inputs)

    def ours(*left_out: str) -> None:
        scores = [score for score in SCORES if score not in left_out]
        OODScores({"outside": str(path)}, scores=scores, k=K).run(classifier, data)

    peers = {
        "MaxSoftmax": lambda: peer.MaxSoftmax(network),
        "EnergyBased": lambda: peer.EnergyBased(network),
        "Entropy": lambda: peer.Entropy(network),
        "margin": lambda: Margin(network),
        "KNN": lambda: peer.KNN(network.features, k=K),
        "Mahalanobis": lambda: peer.Mahalanobis(network.features),
        "ViM": lambda: peer.ViM(network.features, 32, network.head.weight, network.head.bias),  # pyright: ignore[reportArgumentType]
    }
    jobs: dict[str, Callable[[], object]] = {
        "plain forward passes": plain_passes,
        "OODScores without ODIN": partial(ours, "odin"),
        "OODScores, all eight": ours,
        "ODIN alone": lambda: [step(network, inputs) for inputs, _ in chain(*test)],
        **{
            f"pytorch-ood {name}": partial(run_peer, make, train, test)
            for name, make in peers.items()
        },
        "pytorch-ood ODIN": partial(
            run_peer, lambda: peer.ODIN(network, norm_std=list(STD)), train, test, gradients=True
        ),
    }
    rounds = [
        {name: best_of(1, lambda _, work=work: work()) for name, work in jobs.items()}
        for _ in range(ROUNDS)
    ]
    return {name: min(seconds[name] for seconds in rounds) for name in jobs}


def main() -> None:
    """Time all jobs on one network, and print the ratios."""
    classifier = AnnotatorClassifier(
        (3, 32, 32), 10, partial(ResNet18, width=8), channels_last=True
    ).eval()
    data = Images(batch_size=128)
    data.setup()
    records = RNG.integers(256, size=(OUTSIDE, 3073), dtype=np.uint8)
    records[:, 0] = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "outside.bin"
        records.tofile(path)
        seconds = measure_jobs(classifier, data, path)

    print(
        f"ResNet-18, width 8: {TRAIN:,} training, {TEST:,} test and {OUTSIDE:,} OOD images, "
        f"threads: {torch.get_num_threads()}\n"
    )
    for name, value in seconds.items():
        print(f"{name:28s}{value:9.2f} s")
    print()
    plain, without, whole, odin = (seconds[name] for name in list(seconds)[:4])
    their_odin = seconds["pytorch-ood ODIN"]
    theirs = (
        sum(value for name, value in seconds.items() if name.startswith("pytorch-ood")) - their_odin
    )
    library, limit = theirs - seconds["pytorch-ood margin"], 1.2 * plain + odin
    print(
        f"seven scores: {without / plain:.2f}x the plain forward passes (target 1.2x): "
        f"{verdict(without <= 1.2 * plain)}"
    )
    print(
        f"all eight: {whole:.1f} s of at most {limit:.1f} s (1.2x the passes, plus ODIN alone): "
        f"{verdict(whole <= limit)}"
    )
    print(
        f"without ODIN: {theirs / without:.1f}x as fast as pytorch-ood (target 5x): "
        f"{verdict(theirs >= 5 * without)}"
    )
    print(f"  the margin not counted on its side: {library / without:.1f}x")
    print(
        f"with ODIN: {(theirs + their_odin) / whole:.1f}x as fast as pytorch-ood (target 2x): "
        f"{verdict(theirs + their_odin >= 2 * whole)}"
    )


if __name__ == "__main__":
    main()
