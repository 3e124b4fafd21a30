"""Tiny ImageNet's validation images without CIFAR-10's classes, as a near-OOD set of CIFAR's size.

Deng et al. 2009 (ImageNet's terms: research, not commercial). They are built once from the
published archive: 64 x 64 pixels, of which every four become one.
"""

import io
import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from core.atomic_io import write_atomically
from core.errors import InputError
from core.folder_lock import folder_lock
from datamodules.io.files import PublishedFile, find
from datamodules.io.images import decode_image
from datamodules.io.npz import read_npz

# The address was looked up and is untried; 248 MB.
ARCHIVE = PublishedFile(
    "tiny-imagenet/tiny-imagenet-200.zip",
    "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
    "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
)
# What is built of it. Decoders of JPEG differ in the last bit, so it has no checksum.
BUILT = PublishedFile("tiny-imagenet/tin_val_32x32.npz", None, ARCHIVE.url)
ARRAYS = ("images", "no_cifar10_class")
FOLDER, SIDE = "tiny-imagenet-200/val", 64
# Classes of Tiny ImageNet that show what CIFAR-10 does (a gazelle is a deer, a gondola a ship): a
# judgement by hand. No airplanes and no horses are among the 200.
LIKE_CIFAR10 = frozenset(
    {
        "n01641577", "n01644900",  # bullfrog, tailed frog
        "n01855672", "n02002724", "n02056570", "n02058221",  # goose, stork, penguin, albatross
        "n02085620", "n02094433", "n02099601", "n02099712", "n02106662", "n02113799",  # dogs
        "n02123045", "n02123394", "n02124075",  # cats
        "n02423022",  # gazelle
        "n02814533", "n03100240", "n03670208", "n04285008",  # wagon, convertible, limousine, car
        "n03447447", "n03662601",  # gondola, lifeboat
        "n03796401", "n03977966",  # moving van, police van
    }
)  # fmt: skip


def fetch_tiny_imagenet(root: str) -> None:
    """Build the images below `root` from the archive, where they are absent; it is downloaded, or
    put there by hand.
    """
    path = Path(root) / BUILT.path
    if path.exists():
        return
    archive = find(root, ARCHIVE)
    with folder_lock(path.parent, "builds Tiny ImageNet's small images"):
        if not path.exists():  # of several processes the first builds them for all
            content = io.BytesIO()
            np.savez_compressed(content, **dict(zip(ARRAYS, small_images(archive), strict=True)))
            write_atomically(path, content.getvalue())


def read_tiny_imagenet(path: Path) -> Tensor:
    """The images without CIFAR-10's classes, uint8 [N, 3, 32, 32]."""
    images, wanted = read_npz(path, ARRAYS)
    layout = (images.dtype, images.shape[1:2], images.ndim, wanted.dtype, wanted.shape)
    if layout != (np.uint8, (3,), 4, np.bool_, images.shape[:1]):
        raise InputError(
            f"{path} is not in the layout of Tiny ImageNet's small images; it must hold images, "
            "bytes of shape N x 3 x height x width, and no_cifar10_class, N of yes or no."
        )
    return torch.from_numpy(images[wanted])


def small_images(archive: Path) -> tuple[np.ndarray, np.ndarray]:
    """All validation images, uint8 [N, 3, 32, 32], and whether CIFAR-10 has no such class.

    Each pixel is the mean of four.
    """
    try:
        with zipfile.ZipFile(archive) as zipped:
            lines = zipped.read(f"{FOLDER}/val_annotations.txt").decode().splitlines()
            rows = [line.split("\t")[:2] for line in lines]
            images = [
                decode_image(zipped.read(f"{FOLDER}/images/{name}"), "RGB", f"{archive}: {name}")
                for name, _ in rows
            ]
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, zlib.error, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{archive} is not the published archive of Tiny ImageNet; delete it to have it "
            "downloaded again."
        ) from error
    sizes = {image.shape for image in images}
    if sizes != {(SIDE, SIDE, 3)}:
        raise InputError(
            f"{archive} holds images of {sorted(sizes)}; all must have {SIDE} x {SIDE} pixels."
        )
    large = np.stack(images).astype(np.uint16)
    sums = large[:, ::2, ::2] + large[:, 1::2, ::2] + large[:, ::2, 1::2] + large[:, 1::2, 1::2]
    small = ((sums + 2) // 4).astype(np.uint8).transpose(0, 3, 1, 2)
    wanted = np.array([wnid not in LIKE_CIFAR10 for _, wnid in rows])
    return np.ascontiguousarray(small), wanted
