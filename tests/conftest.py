"""Fixtures that several tests share: the real data where it is at hand, and small files in exactly
its formats.
"""

import csv
import gzip
import hashlib
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from corpora.difficulty import Regions
from corpora.options import CorpusOptions, Interpolation, SourceOptions
from datamodules import CIFAR10H, CIFAR10N, POPQUORN, ChaosNLI, FashionMNISTH
from datamodules.datasets import digits, simulated_soft_digits
from datamodules.datasets.cifar10h import RECORD
from datamodules.io import mnist
from datamodules.io.files import sha256
from studies.launch import job_server, pack_results
from studies.report import copy
from tests import processes
from tests.devices.both import OPTIONS, Trained, cli, read_run, start, write_callbacks

# The same examples each time, whatever was found before, and as much time for each as it takes.
settings.register_profile(
    "plurality", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("plurality")


def pytest_configure(config: pytest.Config) -> None:
    """Several processes that run tests have the processes that these ask for forked from one."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        processes.start_server()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What goes to one process under `--dist loadgroup`: a file, but all of one Slurm together,
    whose two CPUs they would take from each other.
    """
    for item in items:
        folder = item.path.parent.name
        group = folder if folder == "cluster" else item.path.relative_to(item.config.rootpath)
        item.add_marker(pytest.mark.xdist_group(str(group)))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of published data; tests that need it skip where it is not at hand."""
    folder = os.environ.get("PLURALITY_DATA")
    if not folder:
        pytest.skip("PLURALITY_DATA is not set, so the published data is not at hand")
    return Path(folder)


@pytest.fixture(scope="session", autouse=True)
def digits_made_once() -> Iterator[None]:
    """Hundreds of tests read the same blended digits: they are made once in each process that runs
    tests, and each test has copies of its own.
    """
    made = cache(digits.blended_digits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            digits, "blended_digits", lambda seed: tuple(array.copy() for array in made(seed))
        )
        yield


@pytest.fixture(scope="module")
def forked_jobs() -> Iterator[None]:
    """Studies that a test runs in its own process start their jobs without the time that imports
    take.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_server, "open_server", processes.ForkedJobServer)
        yield


@pytest.fixture(scope="module")
def fewer_pictures() -> Iterator[None]:
    """Where a test looks at the report of many packed runs, these leave no pictures of their own,
    and those of a report's copy are blank.

    tests/callbacks/figures/test_drawing.py and tests/studies/report/test_report_study.py draw them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack_results, "draw_pictures", lambda pictures, folder: [])
        patch.setattr(copy, "render", lambda figure, kind, dpi: b"blank")
        yield


def write_cifar(root: Path, items: int = 60) -> Path:
    """CIFAR-10H in its published formats, but with few images: counts as .npy, images in the binary
    version.
    """
    rng = np.random.default_rng(7)
    records = rng.integers(0, 256, size=(items, RECORD), dtype=np.uint8)
    records[:, 0] = np.arange(items) % 10
    counts = rng.multinomial(50, np.eye(10)[np.arange(items) % 10] * 0.7 + 0.03)
    for folder in ("cifar-10h", "cifar-10-batches-bin"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    np.save(root / CIFAR10H.COUNTS.path, counts)
    records.tofile(root / CIFAR10H.IMAGES.path)
    return root


def trust(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Take the files below `root` as the published ones."""
    for name in ("COUNTS", "IMAGES"):
        file = getattr(CIFAR10H, name)
        digest = hashlib.sha256((root / file.path).read_bytes()).hexdigest()
        monkeypatch.setattr(CIFAR10H, name, replace(file, sha256=digest))


def write_human_labels(path: Path, content: object) -> Path:
    """A file as torch wrote it when numpy called its innermost package `core`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pickled = pickle.dumps(content, protocol=2).replace(b"numpy._core.", b"numpy.core.")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", "3\n")
    return path


def write_cifar10n(root: Path, items: int = 60) -> Path:
    """CIFAR-10N in its published formats, but with few images, beside a small CIFAR-10H."""
    rng = np.random.default_rng(12)
    batches = rng.integers(0, 256, size=(5, items // 5, RECORD), dtype=np.uint8)
    labels = np.arange(items) % 10
    batches[..., 0] = labels.reshape(5, -1)
    for file, records in zip(CIFAR10N.IMAGES, batches, strict=True):
        records.tofile(root / file.path)
    wrong = rng.random((3, items)) < 0.2
    chosen = np.where(wrong, rng.integers(10, size=(3, items)), labels)
    names = ("random_label1", "random_label2", "random_label3")
    content = {"clean_label": labels, **dict(zip(names, chosen, strict=True))}
    write_human_labels(root / CIFAR10N.LABELS.path, content)
    return root


def trust_cifar10n(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Take the files of CIFAR-10N below `root` as the published ones."""
    digests = {
        file: hashlib.sha256((root / file.path).read_bytes()).hexdigest()
        for file in (CIFAR10N.LABELS, *CIFAR10N.IMAGES)
    }
    known = [replace(file, sha256=digest) for file, digest in digests.items()]
    monkeypatch.setattr(CIFAR10N, "LABELS", known[0])
    monkeypatch.setattr(CIFAR10N, "IMAGES", tuple(known[1:]))


@pytest.fixture
def small_cifar10n(small_cifar: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root folder with a small CIFAR-10N and CIFAR-10H that pass for the published ones."""
    root = write_cifar10n(small_cifar)
    trust_cifar10n(monkeypatch, root)
    return root


def write_fashion(root: Path, items: int = 60) -> Path:
    """Fashion-MNIST-H in its published formats, but with few images."""
    rng = np.random.default_rng(13)
    counts = rng.multinomial(60, np.eye(10)[np.arange(items) % 10] * 0.5 + 0.05)
    images = rng.integers(0, 256, size=(items, 28, 28), dtype=np.uint8)
    header = bytes([0, 0, 8, 3]) + b"".join(size.to_bytes(4, "big") for size in images.shape)
    for file in (FashionMNISTH.COUNTS, FashionMNISTH.IMAGES):
        (root / file.path).parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(root / FashionMNISTH.COUNTS.path, counts, fmt="%d", delimiter=",")
    path = root / FashionMNISTH.IMAGES.path
    path.write_bytes(gzip.compress(header + images.tobytes(), mtime=0))
    return root


def trust_fashion(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Take the files of Fashion-MNIST-H below `root` as the published ones."""
    for name in ("COUNTS", "IMAGES"):
        file = getattr(FashionMNISTH, name)
        monkeypatch.setattr(FashionMNISTH, name, replace(file, sha256=sha256(root / file.path)))


@pytest.fixture
def small_fashion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root folder with a small Fashion-MNIST-H that passes for the published one."""
    root = write_fashion(tmp_path / "data")
    trust_fashion(monkeypatch, root)
    return root


@pytest.fixture
def small_cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root folder with a small CIFAR-10H that passes for the published one."""
    root = write_cifar(tmp_path / "data")
    trust(monkeypatch, root)
    return root


def write_chaosnli(root: Path, items: int = 40) -> Path:
    """ChaosNLI in its published format, but with few items; `label_counter` leaves out what nobody
    chose, as the published files do.
    """
    rng = np.random.default_rng(8)
    for subset, (labels, fields) in {
        "snli": ("enc", ("premise", "hypothesis")),
        "mnli": ("enc", ("premise", "hypothesis")),
        "alphanli": ("12", ("obs1", "obs2", "hyp1", "hyp2")),
    }.items():
        path = root / ChaosNLI.FILES[subset].path
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = []
        for item in range(items):
            share = np.eye(len(labels))[item % len(labels)] * (item % 4) + 0.2
            count = rng.multinomial(100, share / share.sum()).tolist()
            uid = f"{subset}-{item}"
            example = {
                "uid": uid,
                **{field: f"The {field} of {uid}." for field in fields},
                "source": subset,
            }
            counter = {label: votes for label, votes in zip(labels, count, strict=True) if votes}
            rows.append(
                {
                    "uid": uid,
                    "label_counter": counter,
                    "label_count": count,
                    "label_dist": [n / 100 for n in count],
                    "example": example,
                }
            )
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


def write_popquorn(root: Path, items: int = 60) -> Path:
    """POPQUORN's politeness ratings in their published format: a row per rating, its raters in no
    order.
    """
    rng = np.random.default_rng(9)
    path = root / POPQUORN.FILE.path
    path.parent.mkdir(parents=True, exist_ok=True)
    ratings = [
        (item, rater)
        for item in range(items)
        for rater in rng.choice(12, size=6 + item % 3, replace=False)
    ]
    with open(path, "w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(
            [
                "instance_id",
                "user_id",
                "text",
                "politeness",
                "gender",
                "race",
                "age",
                "occupation",
                "education",
            ]
        )
        for row in rng.permutation(len(ratings)):
            item, rater = ratings[row]
            score = min(5, 1 + item % 5 + int(rng.integers(2)))
            text = f'Dear all,\nplease read "{item}", thanks.'
            table.writerow(
                [
                    item,
                    rater,
                    text,
                    f"{score}.0",
                    "Woman",
                    "White",
                    "35-39",
                    "Retired",
                    "College degree",
                ]
            )
    return root


def trust_texts(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Take the files of ChaosNLI and POPQUORN below `root` as the published ones."""
    digests = {
        name: hashlib.sha256((root / file.path).read_bytes()).hexdigest()
        for name, file in ChaosNLI.FILES.items()
    }
    monkeypatch.setattr(
        ChaosNLI,
        "FILES",
        {name: replace(file, sha256=digests[name]) for name, file in ChaosNLI.FILES.items()},
    )
    monkeypatch.setattr(
        POPQUORN,
        "KNOWN",
        {hashlib.sha256((root / POPQUORN.FILE.path).read_bytes()).hexdigest(): "small"},
    )


@pytest.fixture
def small_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root folder with a small ChaosNLI and a small POPQUORN that pass for the published ones."""
    root = write_popquorn(write_chaosnli(tmp_path / "data"))
    trust_texts(monkeypatch, root)
    return root


SMALL_CORPUS = CorpusOptions(
    sources={
        "mnist": SourceOptions(Regions(2, 0.45, 0.2, 0.1), (140, 30, 30)),
        "interpolated": SourceOptions(Regions(2, 0.45, 0.05, 0.01), (98, 21, 21)),
    },
    near_duplicate=1.0,
    easy_per_digit=0,
    known_digits=100,
    interpolation=Interpolation(
        digits=500, dimensions=4, epochs=8, classifier_epochs=1, images=200
    ),
)


def write_mnist(root: Path, items: int = 900, test_items: int = 100) -> Path:
    """MNIST in its published format, but with few images: of every class one pattern, blurred by
    noise.
    """
    rng = np.random.default_rng(10)
    patterns = rng.integers(0, 200, size=(10, 28, 28))
    (root / "mnist").mkdir(parents=True, exist_ok=True)
    for part, number in (("train", items), ("test", test_items)):
        labels = (np.arange(number) % 10).astype(np.uint8)
        images = (patterns[labels] + rng.integers(0, 56, size=(number, 28, 28))).astype(np.uint8)
        for file, array in zip(mnist.FILES[part], (images, labels), strict=True):
            header = bytes([0, 0, 8, array.ndim]) + b"".join(
                size.to_bytes(4, "big") for size in array.shape
            )
            (root / file.path).write_bytes(gzip.compress(header + array.tobytes(), mtime=0))
    return root


def trust_mnist(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Take the files of MNIST below `root` as the published ones, and make a stand-in of
    soft-digits that is as small.
    """
    for part, files in mnist.FILES.items():
        digests = [
            hashlib.sha256(gzip.decompress((root / file.path).read_bytes())).hexdigest()
            for file in files
        ]
        monkeypatch.setitem(
            mnist.FILES,
            part,
            tuple(
                replace(file, sha256=digest) for file, digest in zip(files, digests, strict=True)
            ),
        )
    monkeypatch.setattr(simulated_soft_digits, "OPTIONS", SMALL_CORPUS)


@pytest.fixture(scope="session")
def built_stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small MNIST and the stand-in of soft-digits that is built of it: once, for
    the small corpus is always the same.
    """
    root = write_mnist(tmp_path_factory.mktemp("stand-in"))
    with pytest.MonkeyPatch.context() as monkeypatch:
        trust_mnist(monkeypatch, root)
        simulated_soft_digits.stand_in(str(root), annotators=6, seed=0)
    return root


@pytest.fixture
def small_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_stand_in: Path) -> Path:
    """A root folder with a small MNIST that passes for the published one, and the stand-in of
    soft-digits that was built of it.
    """
    root = tmp_path / "data"
    shutil.copytree(built_stand_in, root, dirs_exist_ok=True)
    trust_mnist(monkeypatch, root)
    return root


def write_own_votes(root: Path, items: int = 40) -> Path:
    """The files that configs/own_votes.yaml reads: a row per vote, and a row per item, in
    no order.
    """
    rng = np.random.default_rng(11)
    (root / "own").mkdir(parents=True, exist_ok=True)
    labels = ("no", "unsure", "yes")
    votes = [
        (f"post-{item}", f"rater-{rater}", labels[rng.integers(3)])
        for item in range(items)
        for rater in range(4 + item % 3)
    ]
    for name, head, rows in (
        (
            "votes.csv",
            ("item", "annotator", "label"),
            [votes[row] for row in rng.permutation(len(votes))],
        ),
        (
            "items.csv",
            ("item", "text"),
            [
                (f"post-{item}", f'Is "{item}",\nas was said, polite?')
                for item in rng.permutation(items)
            ],
        ),
    ):
        with open(root / "own" / name, "w", newline="") as stream:
            csv.writer(stream).writerows([head, *rows])
    return root


@pytest.fixture
def small_data(
    small_cifar10n: Path, small_texts: Path, small_mnist: Path, small_fashion: Path
) -> Path:
    """A root folder with small forms of all published datasets."""
    small_cifar = small_cifar10n
    assert small_cifar == small_texts == small_mnist == small_fashion
    return write_own_votes(small_cifar)


@pytest.fixture(scope="session")
def one_process(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Trained]:
    """A run of one process, which those of several are compared with, and the options it was made
    with.
    """
    folder = tmp_path_factory.mktemp("one")
    options = [
        *OPTIONS,
        "--config",
        str(write_callbacks(folder, ["HessianSpectrum"])),
        "--trainer.precision",
        "64-true",
    ]
    for command in ("fit", "test"):
        start(*cli(command, *options, "--trainer.default_root_dir", folder / "runs"))
    return options, read_run(folder / "runs")
