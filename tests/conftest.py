"""Fixtures that several tests share: the real data where it is at hand, and small files in exactly its formats."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datamodules import CIFAR10H
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
