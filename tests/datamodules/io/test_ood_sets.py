"""Images from elsewhere: every format as it is published, brought to any shape, and refused in one
sentence where something is wrong.
"""

import gzip
import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat
from torch import Tensor

from core.errors import InputError
from datamodules.io.files import AbsentFile
from datamodules.io.ood_sets import (
    PUBLISHED,
    fetch_ood_set,
    fit_images,
    read_cifar,
    read_ood_set,
    read_svhn,
)
from tests.datamodules.io.test_idx import idx_bytes

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(256, size=(7, 3, 32, 32), dtype=np.uint8)
GREY = RNG.integers(256, size=(7, 28, 28), dtype=np.uint8)
NOWHERE = "http://127.0.0.1:9/"


def write_svhn(path: Path, images: np.ndarray = COLOUR) -> Path:
    """As published: X [32, 32, 3, N] and y [N, 1], where 10 stands for the digit 0."""
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(
        path,
        {
            "X": images.transpose(2, 3, 1, 0),
            "y": np.arange(1, len(images) + 1, dtype=np.uint8)[:, None],
        },
        do_compression=True,
    )
    return path


def write_cifar100(path: Path, images: np.ndarray = COLOUR) -> Path:
    """As published: records of a coarse label, a fine label and the pixels, channels first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    labels = np.stack([np.arange(len(images)) % 20, np.arange(len(images)) % 100], axis=1)
    np.concatenate([labels, images.reshape(len(images), -1)], axis=1).astype(np.uint8).tofile(path)
    return path


def trust(monkeypatch: pytest.MonkeyPatch, name: str, content: bytes) -> None:
    """Take this content as the published one, and keep tests off the network."""
    monkeypatch.setitem(
        PUBLISHED,
        name,
        replace(
            PUBLISHED[name], sha256=hashlib.sha256(content).hexdigest(), url=NOWHERE + "x.tar.gz"
        ),
    )


def equal(images: Tensor, expected: np.ndarray) -> None:
    assert images.dtype == torch.uint8
    np.testing.assert_array_equal(images.numpy(), expected)


def test_svhn_and_cifar100_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, write in (("svhn", write_svhn), ("cifar100", write_cifar100)):
        trust(monkeypatch, name, write(tmp_path / PUBLISHED[name].path).read_bytes())
        equal(read_ood_set(name, str(tmp_path), (3, 32, 32)), COLOUR)


def test_cifar100_comes_out_of_its_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is downloaded, or put there by hand, is the archive; pooch takes one that lies there
    already.
    """
    content = write_cifar100(tmp_path / "made" / "test.bin").read_bytes()
    (tmp_path / "cifar-100-binary").mkdir()
    archive = tmp_path / "cifar-100-binary" / "x.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        entry = tarfile.TarInfo("cifar-100-binary/test.bin")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    trust(monkeypatch, "cifar100", content)
    known = replace(
        PUBLISHED["cifar100"], archive_sha256=hashlib.sha256(archive.read_bytes()).hexdigest()
    )
    monkeypatch.setitem(PUBLISHED, "cifar100", known)
    equal(read_ood_set("cifar100", str(tmp_path), (3, 32, 32)), COLOUR)


def test_a_published_gz_is_checked_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / PUBLISHED["mnist"].path
    path.parent.mkdir()
    content = idx_bytes(GREY)
    trust(monkeypatch, "mnist", content)
    for level in (1, 9):  # compressed anew
        path.write_bytes(gzip.compress(content, level))
        equal(read_ood_set("mnist", str(tmp_path), (1, 28, 28)), GREY[:, None])
    path.write_bytes(gzip.compress(idx_bytes(GREY // 2)))
    with pytest.raises(InputError, match="is not the published file"):
        read_ood_set("mnist", str(tmp_path), (1, 28, 28))
    path.write_bytes(gzip.compress(content)[:-20])
    with pytest.raises(InputError, match="was cut short or is no gzip file; delete it"):
        read_ood_set("mnist", str(tmp_path), (1, 28, 28))


def test_what_is_absent_is_told_from_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    trust(monkeypatch, "svhn", b"published")
    with pytest.raises(
        AbsentFile,
        match=r"svhn/test_32x32.mat is absent and http://127.0.0.1:9/x.tar.gz could not be "
        r"downloaded",
    ):
        fetch_ood_set("svhn", str(tmp_path))
    with pytest.raises(
        AbsentFile,
        match=r"no file or folder svnh; give a path that exists, or one of the names cifar100, "
        r"fashion_mnist, mnist, svhn",
    ):
        fetch_ood_set("svnh", str(tmp_path))
    write_svhn(tmp_path / PUBLISHED["svhn"].path)
    with pytest.raises(InputError, match="is not the published file") as error:
        read_ood_set("svhn", str(tmp_path), (3, 32, 32))
    assert not isinstance(error.value, AbsentFile)


def test_files_by_path(tmp_path: Path):
    (tmp_path / "letters.idx").write_bytes(idx_bytes(GREY))
    (tmp_path / "letters-idx3-ubyte").write_bytes(idx_bytes(GREY))
    cifar10 = np.concatenate([np.full((7, 1), 9, np.uint8), COLOUR.reshape(7, -1)], axis=1)
    cifar10.tofile(tmp_path / "ten.bin")
    sets = {
        "letters.idx": GREY[:, None],
        "letters-idx3-ubyte": GREY[:, None],
        "ten.bin": COLOUR,
        write_cifar100(tmp_path / "hundred.bin").name: COLOUR,
        write_svhn(tmp_path / "digits.mat").name: COLOUR,
    }
    for name, expected in sets.items():
        equal(read_ood_set(str(tmp_path / name), "unused", expected.shape[1:]), expected)


def test_the_labels_tell_the_two_cifar_formats_apart_where_the_size_fits_both(tmp_path: Path):
    """3,074 records of CIFAR-10 have as many bytes as 3,073 of CIFAR-100."""
    ten = np.full((3074, 3073), 200, np.uint8)
    ten[:, 0] = 3
    ten.tofile(tmp_path / "ten.bin")
    hundred = np.full((3073, 3074), 200, np.uint8)
    hundred[:, :2] = 19, 99
    hundred.tofile(tmp_path / "hundred.bin")
    for name, items in (("ten.bin", 3074), ("hundred.bin", 3073)):
        images = read_cifar(tmp_path / name)
        assert images.shape == (items, 3, 32, 32)
        assert (images == 200).all()


def test_a_folder_of_images_of_any_size_and_kind_in_the_order_of_paths(tmp_path: Path):
    folder = tmp_path / "textures"
    (folder / "b").mkdir(parents=True)
    Image.fromarray(np.full((20, 30, 3), (10, 20, 60), np.uint8)).save(folder / "z.png")
    Image.fromarray(np.full((5, 5), 90, np.uint8)).save(folder / "a.JPG")
    Image.fromarray(np.full((40, 8, 4), 120, np.uint8)).save(folder / "b" / "alpha.png")
    Image.fromarray(np.full((9, 9, 3), 200, np.uint8)).quantize().save(folder / "b" / "palette.gif")
    (folder / "README.txt").write_text("not an image")
    colour = read_ood_set(str(folder), "unused", (3, 16, 12))
    grey = read_ood_set(str(folder), "unused", (1, 16, 12))
    assert colour.shape == (4, 3, 16, 12)
    assert colour[:, :, 3, 3].tolist() == [
        [90, 90, 90],
        [120, 120, 120],
        [200, 200, 200],
        [10, 20, 60],
    ]
    assert grey[:, 0, 3, 3].tolist() == [90, 120, 200, 30]


@pytest.mark.parametrize("size", [(8, 8), (32, 32), (20, 37)])
def test_images_are_resized_as_pillow_does(size: tuple[int, int]):
    """An implementation of its own, with antialiasing.

    Both round at each of two steps, so they may differ by 1.
    """
    smooth = np.asarray(
        Image.fromarray(GREY[0]).resize((7, 7)).resize((28, 28), Image.Resampling.BICUBIC)
    )
    ours = fit_images(torch.from_numpy(smooth.copy())[None, None], (3, *size))
    reference = np.asarray(
        Image.fromarray(smooth).resize(size[::-1], Image.Resampling.BILINEAR)
    ).astype(int)
    assert np.abs(ours[0].numpy().astype(int) - reference).max() <= 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.bin", COLOUR.tobytes()[:-1], "not in CIFAR's binary version"),
        # a label of 200
        (
            "x.bin",
            np.full(3073, 200, np.uint8).tobytes(),
            "not in CIFAR's binary version",
        ),
        ("x.bin", b"", "holds no images"),
        ("x.idx", idx_bytes(GREY)[:-5], "it was cut short"),
        ("x.idx", idx_bytes(GREY[:0]), "holds no images"),
        ("x.idx", idx_bytes(GREY[0, 0]), "has 1 dimension(s), so it holds no images"),
        ("x.gz", b"no gzip", "is not an idx file"),
        ("x.mat", b"MATLAB 5.0 MAT-file", "cannot be read as a Matlab file"),
        ("x.mat", b"", "cannot be read as a Matlab file"),
        ("x.npy", b"", "is of no kind that is known here"),
    ],
)
def test_a_wrong_or_cut_short_file_is_refused_by_name(
    name: str, content: bytes, message: str, tmp_path: Path
):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_ood_set(str(path), "unused", (3, 32, 32))
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_matlab_file_is_taken_only_where_it_is_whole_and_holds_images(tmp_path: Path):
    whole = write_svhn(tmp_path / "x.mat").read_bytes()
    (tmp_path / "x.mat").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"x.mat cannot be read as a Matlab file"):
        read_svhn(tmp_path / "x.mat")
    objects = np.empty((1, 2), dtype=object)
    objects[0, 0], objects[0, 1] = "run me", np.zeros(3)
    for content in (
        {"X": objects},
        {"X": np.zeros((32, 32, 3, 2))},
        {"X": np.zeros((4, 4), np.uint8)},
        {"y": np.zeros(3, np.uint8)},
    ):
        savemat(tmp_path / "x.mat", content)
        with pytest.raises(InputError, match="is not in SVHN's layout"):
            read_svhn(tmp_path / "x.mat")


def test_a_folder_with_nothing_or_something_wrong_in_it(tmp_path: Path):
    with pytest.raises(InputError, match=r"holds no images; their names must end in one of .bmp"):
        read_ood_set(str(tmp_path), "unused", (3, 8, 8))
    buffer = io.BytesIO()
    Image.fromarray(GREY[0]).save(buffer, "png")
    (tmp_path / "cut.png").write_bytes(buffer.getvalue()[:-60])
    with pytest.raises(InputError, match=r"cut.png cannot be read as an image"):
        read_ood_set(str(tmp_path), "unused", (3, 8, 8))
    (tmp_path / "cut.png").unlink()
    Image.fromarray(np.full((4, 4), 40_000, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(InputError, match=r"deep.png has more than 8 bits per pixel"):
        read_ood_set(str(tmp_path), "unused", (3, 8, 8))


@pytest.mark.parametrize("shape", [(384,), (4, 8, 8), (8, 8)])
def test_inputs_that_are_no_images(shape: tuple[int, ...], tmp_path: Path):
    with pytest.raises(InputError, match="mnist holds images, which do not fit inputs of shape"):
        read_ood_set("mnist", str(tmp_path), shape)


@pytest.mark.parametrize(("name", "mean"), [("mnist", 0.1325), ("fashion_mnist", 0.2868)])
def test_real_sets_pass_their_published_hash(name: str, mean: float, real_data: Path):
    images = read_ood_set(name, str(real_data), (3, 32, 32))
    assert images.shape == (10_000, 3, 32, 32)
    # the test sets' mean grey value
    assert images[:, 0].double().mean().item() / 255 == pytest.approx(mean, abs=0.001)
    assert torch.equal(images[:, 0], images[:, 2])
