"""CIFAR-10H from its published formats: small files made in exactly those, and the real ones where
they are at hand.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from core.errors import InputError
from datamodules import CIFAR10H
from datamodules.datasets.cifar10h import RECORD, read_cifar_binary
from tests.conftest import trust


def test_reads_images_and_votes_in_the_same_order(small_cifar: Path):
    data = CIFAR10H(root=str(small_cifar))
    data.setup()
    assert data.corpus
    raw = (small_cifar / CIFAR10H.IMAGES.path).read_bytes()
    image = torch.frombuffer(
        bytearray(raw[3 * RECORD + 1 : 4 * RECORD]), dtype=torch.uint8
    ).reshape(3, 32, 32)
    assert torch.equal(data.corpus.inputs[3], image)  # pyright: ignore
    assert np.array_equal(data.corpus.votes.counts, np.load(small_cifar / CIFAR10H.COUNTS.path))  # pyright: ignore
    assert len(data.corpus.splits["train"]) == 48
    assert np.array_equal(data.corpus.splits["val"], data.corpus.splits["test"])


def test_only_training_batches_are_augmented(small_cifar: Path):
    data = CIFAR10H(root=str(small_cifar), batch_size=4)
    data.setup()
    loader = data.loader(np.arange(8), training=False)
    first, again = (torch.cat([inputs for inputs, _ in loader]) for _ in range(2))
    assert torch.equal(first, again)
    training = data.loader(np.arange(8), training=True)
    augmented = {
        int(i): x for inputs, index in training for x, i in zip(inputs, index, strict=True)
    }
    assert sum(not torch.equal(first[i], augmented[i]) for i in range(8)) >= 6


def test_a_batch_cut_short(small_cifar: Path, monkeypatch: pytest.MonkeyPatch):
    path = small_cifar / CIFAR10H.IMAGES.path
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(InputError, match=r"test_batch.bin is not the published file"):
        CIFAR10H(root=str(small_cifar)).setup()
    trust(monkeypatch, small_cifar)
    with pytest.raises(InputError, match=r"test_batch.bin has 184375 bytes; .* multiple of 3073"):
        CIFAR10H(root=str(small_cifar)).setup()
    path.write_bytes(b"")
    with pytest.raises(InputError, match="has 0 bytes"):
        read_cifar_binary(path)


def test_counts_and_images_of_different_length(small_cifar: Path, monkeypatch: pytest.MonkeyPatch):
    np.save(small_cifar / CIFAR10H.COUNTS.path, np.ones((59, 10), dtype=int))
    trust(monkeypatch, small_cifar)
    with pytest.raises(InputError, match=r"60 inputs but .*cifar10h-counts.npy has 59 rows"):
        CIFAR10H(root=str(small_cifar)).setup()


def test_counts_of_another_shape(small_cifar: Path, monkeypatch: pytest.MonkeyPatch):
    np.save(small_cifar / CIFAR10H.COUNTS.path, np.ones((60, 9), dtype=int))
    trust(monkeypatch, small_cifar)
    with pytest.raises(InputError, match="has 9 classes; this dataset has 10"):
        CIFAR10H(root=str(small_cifar)).setup()


def test_counts_with_a_pickle_inside_are_never_unpickled(
    small_cifar: Path, monkeypatch: pytest.MonkeyPatch
):
    np.save(
        small_cifar / CIFAR10H.COUNTS.path,
        np.array([{"code": "run me"}], dtype=object),
        allow_pickle=True,
    )
    trust(monkeypatch, small_cifar)
    with pytest.raises(InputError, match=r"cifar10h-counts.npy is not a plain array"):
        CIFAR10H(root=str(small_cifar)).setup()


def test_the_published_data(real_data: Path):
    data = CIFAR10H(root=str(real_data), seed=1)
    data.setup()
    assert data.corpus
    assert data.corpus.inputs.shape == (10000, 3, 32, 32)  # pyright: ignore
    assert len(data.corpus.splits["train"]) == 8000
    majority = data.corpus.votes.majority
    shares = [
        np.bincount(majority[data.corpus.splits[split]], minlength=10)
        for split in ("train", "test")
    ]
    assert np.abs(shares[0] - 4 * shares[1]).max() <= 5
