"""Tiny ImageNet's small images: built from an archive of the published form, and read without
CIFAR-10's classes.
"""

import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from core.errors import InputError
from datamodules.io import tiny_imagenet
from datamodules.io.files import AbsentFile
from datamodules.io.npz import read_npz
from datamodules.io.ood_sets import fetch_ood_set, read_ood_set
from datamodules.io.tiny_imagenet import ARCHIVE, BUILT, LIKE_CIFAR10, read_tiny_imagenet

WNIDS = ("n01443537", "n02124075", "n04540053")  # goldfish, Egyptian cat, volleyball


def encoded(image: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "png")  # lossless, so that the mean can be checked
    return stream.getvalue()


def write_archive(root: Path, images: list[np.ndarray]) -> Path:
    """As published: pictures beside a table of their names, classes and boxes."""
    path = root / ARCHIVE.path
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        lines = []
        for number, (image, wnid) in enumerate(zip(images, WNIDS, strict=True)):
            archive.writestr(f"tiny-imagenet-200/val/images/val_{number}.JPEG", encoded(image))
            lines.append(f"val_{number}.JPEG\t{wnid}\t0\t0\t63\t63")
        archive.writestr("tiny-imagenet-200/val/val_annotations.txt", "\n".join(lines) + "\n")
    return path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With an archive of three pictures that passes for the published one; one is grey."""
    rng = np.random.default_rng(0)
    images = [rng.integers(256, size=(64, 64, 3), dtype=np.uint8) for _ in range(2)]
    images.append(rng.integers(256, size=(64, 64), dtype=np.uint8))
    trust(monkeypatch, write_archive(tmp_path, images))
    return tmp_path


def trust(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(tiny_imagenet, "ARCHIVE", replace(ARCHIVE, sha256=digest))


def test_four_pixels_become_their_mean_and_classes_of_cifar10_are_left_out(root: Path):
    images = read_ood_set("tiny_imagenet", str(root), (3, 32, 32))
    assert images.shape == (2, 3, 32, 32)  # without the cat
    with zipfile.ZipFile(root / ARCHIVE.path) as archive:
        for row, number in enumerate((0, 2)):
            content = archive.read(f"tiny-imagenet-200/val/images/val_{number}.JPEG")
            picture = np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(float)
            mean = picture.reshape(32, 2, 32, 2, 3).mean((1, 3)).transpose(2, 0, 1)
            assert np.abs(images[row].numpy() - mean).max() <= 0.5
    small = read_ood_set("tiny_imagenet", str(root), (1, 16, 16))
    assert small.shape == (2, 1, 16, 16)


def test_they_are_built_once(root: Path):
    fetch_ood_set("tiny_imagenet", str(root))
    (root / ARCHIVE.path).unlink()
    fetch_ood_set("tiny_imagenet", str(root))
    assert len(read_tiny_imagenet(root / BUILT.path)) == 2
    assert len(read_ood_set(str(root / BUILT.path), "unused", (3, 32, 32))) == 2


def test_without_a_network_the_set_is_absent_and_another_archive_is_wrong(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    path = root / ARCHIVE.path
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(InputError, match="is not the published file") as error:
        fetch_ood_set("tiny_imagenet", str(root))
    assert not isinstance(error.value, AbsentFile)
    path.unlink()
    nowhere = replace(ARCHIVE, url="http://127.0.0.1:9/tiny-imagenet-200.zip")
    monkeypatch.setattr(tiny_imagenet, "ARCHIVE", nowhere)
    with pytest.raises(AbsentFile, match=r"tiny-imagenet-200.zip is absent and http://127.0.0.1:9"):
        fetch_ood_set("tiny_imagenet", str(root))


def test_pictures_of_another_size_and_archives_of_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    images = [np.zeros((64, 64), np.uint8)] * 2 + [np.zeros((32, 32), np.uint8)]
    trust(monkeypatch, write_archive(tmp_path, images))
    with pytest.raises(InputError, match=r"all must have 64 x 64 pixels"):
        fetch_ood_set("tiny_imagenet", str(tmp_path))
    with zipfile.ZipFile(tmp_path / ARCHIVE.path, "w") as archive:
        archive.writestr("tiny-imagenet-200/words.txt", "")
    trust(monkeypatch, tmp_path / ARCHIVE.path)
    with pytest.raises(InputError, match="is not the published archive of Tiny ImageNet"):
        fetch_ood_set("tiny_imagenet", str(tmp_path))
    assert not (tmp_path / BUILT.path).exists()


@pytest.mark.parametrize(
    "arrays",
    [
        {"images": np.zeros((2, 3, 4, 4)), "no_cifar10_class": np.ones(2, bool)},
        {"images": np.zeros((2, 4, 4, 3), np.uint8), "no_cifar10_class": np.ones(2, bool)},
        {"images": np.zeros((2, 3, 4), np.uint8), "no_cifar10_class": np.ones(2, bool)},
        {"images": np.zeros((2, 3, 4, 4), np.uint8), "no_cifar10_class": np.ones(3, bool)},
        {"images": np.zeros((2, 3, 4, 4), np.uint8), "no_cifar10_class": np.arange(2)},
    ],
)
def test_arrays_of_another_layout(arrays: dict[str, np.ndarray], tmp_path: Path):
    np.savez(tmp_path / "x.npz", **arrays)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"x.npz is not in the layout of Tiny ImageNet"):
        read_tiny_imagenet(tmp_path / "x.npz")


def test_an_npz_is_read_without_unpickling_and_within_what_it_holds(tmp_path: Path):
    values = np.arange(12.0).reshape(3, 4)
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=values, b=np.asfortranarray(values), c=np.array([{}]))
    plain, by_columns = read_npz(path, ("a", "b"))
    assert np.array_equal(plain, values)
    assert np.array_equal(by_columns, values)
    with pytest.raises(InputError, match=r"x.npz: c.npy is not a plain array of numbers"):
        read_npz(path, ("c",))
    with pytest.raises(InputError, match=r"x.npz is no .npz file that holds d"):
        read_npz(path, ("d",))
    with zipfile.ZipFile(path, "w") as archive:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
        )
        archive.writestr("a.npy", header.getvalue())
    with pytest.raises(InputError, match="its header announces 8,000,000,000,000"):
        read_npz(path, ("a",))


def test_the_real_set(real_data: Path):
    images = read_ood_set("tiny_imagenet", str(real_data), (3, 32, 32))
    assert images.shape == (8800, 3, 32, 32)
    assert len(LIKE_CIFAR10) == 24
    path = real_data / BUILT.path
    label, wanted = read_npz(path, ("label", "no_cifar10_class"))
    with np.load(path, allow_pickle=False) as kept:
        wnids = kept["wnids"]
    assert set(wnids[np.unique(label[~wanted])]) == LIKE_CIFAR10
    assert torch.equal(images, torch.from_numpy(read_npz(path, ("images",))[0][wanted]))
