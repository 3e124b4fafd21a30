"""MNIST by its published idx files: images and digits of both parts, checked."""

from typing import NamedTuple

import numpy as np

from core.errors import InputError
from datamodules.io.files import PublishedFile, find
from datamodules.io.idx import read_idx
from datamodules.io.ood_sets import PUBLISHED

SIDE = 28  # of every image, in pixels
DIGITS = 10


def _file(name: str, sha256: str, archive_sha256: str) -> PublishedFile:
    return PublishedFile(
        f"mnist/{name}",
        sha256,
        f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}",
        archive_sha256,
    )


FILES = {  # images and labels of each part
    "train": (
        _file(
            "train-images-idx3-ubyte.gz",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        _file(
            "train-labels-idx1-ubyte.gz",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
    ),
    "test": (
        PUBLISHED["mnist"],
        _file(
            "t10k-labels-idx1-ubyte.gz",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
}


class Handwritten(NamedTuple):
    """Images and the digit that each shows."""

    images: np.ndarray  # uint8 [N, 28, 28]
    digits: np.ndarray  # [N]


def fetch_mnist(root: str) -> None:
    """Make sure that all four files lie below `root`, as they were published."""
    for files in FILES.values():
        for file in files:
            find(root, file)


def read_mnist(root: str, part: str) -> Handwritten:
    """The part "train" or "test", after a download where it is absent."""
    images, digits = (find(root, file) for file in FILES[part])
    result = Handwritten(read_idx(images), read_idx(digits))
    if result.images.shape[1:] != (SIDE, SIDE) or result.images.shape[:1] != result.digits.shape:
        raise InputError(
            f"{images} and {digits} hold {result.images.shape} and {result.digits.shape}; they "
            "must be images and their labels."
        )
    return result
