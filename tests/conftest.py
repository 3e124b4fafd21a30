"""Fixtures that several tests share: the real data where it is at hand, and small files in exactly its formats."""

import csv
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datamodules import CIFAR10H, POPQUORN, ChaosNLI
from datamodules.cifar10h import RECORD


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of published data; tests that need it skip where it is not at hand."""
    folder = os.environ.get("PLURALITY_DATA")
    if not folder:
        pytest.skip("PLURALITY_DATA is not set, so the published data is not at hand")
    return Path(folder)


def write_cifar(root: Path, items: int = 60) -> Path:
    """CIFAR-10H in its published formats, but with few images: counts as .npy, images in the binary version."""
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


@pytest.fixture
def small_cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root folder with a small CIFAR-10H that passes for the published one."""
    root = write_cifar(tmp_path / "data")
    trust(monkeypatch, root)
    return root


def write_chaosnli(root: Path, items: int = 40) -> Path:
    """ChaosNLI in its published format, but with few items; `label_counter` leaves out what nobody chose, as the published files do."""
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
            example = {"uid": uid, **{field: f"The {field} of {uid}." for field in fields}, "source": subset}
            counter = {label: votes for label, votes in zip(labels, count, strict=True) if votes}
            rows.append(
                {"uid": uid, "label_counter": counter, "label_count": count, "label_dist": [n / 100 for n in count], "example": example}
            )
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


def write_popquorn(root: Path, items: int = 60) -> Path:
    """POPQUORN's politeness ratings in their published format: a row per rating, its raters in no order."""
    rng = np.random.default_rng(9)
    path = root / POPQUORN.FILE.path
    path.parent.mkdir(parents=True, exist_ok=True)
    ratings = [(item, rater) for item in range(items) for rater in rng.choice(12, size=6 + item % 3, replace=False)]
    with open(path, "w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["instance_id", "user_id", "text", "politeness", "gender", "race", "age", "occupation", "education"])
        for row in rng.permutation(len(ratings)):
            item, rater = ratings[row]
            score = min(5, 1 + item % 5 + int(rng.integers(2)))
            text = f'Dear all,\nplease read "{item}", thanks.'
            table.writerow([item, rater, text, f"{score}.0", "Woman", "White", "35-39", "Retired", "College degree"])
    return root


def trust_texts(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Take the files of ChaosNLI and POPQUORN below `root` as the published ones."""
    digests = {name: hashlib.sha256((root / file.path).read_bytes()).hexdigest() for name, file in ChaosNLI.FILES.items()}
    monkeypatch.setattr(ChaosNLI, "FILES", {name: replace(file, sha256=digests[name]) for name, file in ChaosNLI.FILES.items()})
    monkeypatch.setattr(POPQUORN, "KNOWN", {hashlib.sha256((root / POPQUORN.FILE.path).read_bytes()).hexdigest(): "small"})


@pytest.fixture
def small_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root folder with a small ChaosNLI and a small POPQUORN that pass for the published ones."""
    root = write_popquorn(write_chaosnli(tmp_path / "data"))
    trust_texts(monkeypatch, root)
    return root


@pytest.fixture
def small_data(small_cifar: Path, small_texts: Path) -> Path:
    """A root folder with small forms of all published datasets."""
    assert small_cifar == small_texts
    return small_cifar
