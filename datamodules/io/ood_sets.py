"""Images from elsewhere, as bytes in a dataset's own shape.

Published sets are given by name; a folder of images, an idx, .bin, .mat or .npz file by its path.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from scipy.io import loadmat, whosmat
from torch import Tensor

from core.errors import InputError
from datamodules.io.files import AbsentFile, PublishedFile, fetch, find
from datamodules.io.idx import read_idx
from datamodules.io.images import decode_image
from datamodules.io.tiny_imagenet import BUILT, fetch_tiny_imagenet, read_tiny_imagenet

PUBLISHED = {
    "svhn": PublishedFile(
        "svhn/test_32x32.mat",
        "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
    ),
    "cifar100": PublishedFile(
        "cifar-100-binary/test.bin",
        "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a",
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        archive_sha256="58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    ),
    "mnist": PublishedFile(
        "mnist/t10k-images-idx3-ubyte.gz",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-images-idx3-ubyte.gz",
        archive_sha256="8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    "fashion_mnist": PublishedFile(
        "fashion-mnist/t10k-images-idx3-ubyte.gz",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/t10k-images-idx3-ubyte.gz",
        archive_sha256="346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    ),
    "tiny_imagenet": BUILT,
}
# the classes that the label bytes of a record count: CIFAR-10 has one label, CIFAR-100 a coarse and
# a fine one
CIFAR_LABELS = ((10,), (20, 100))
IMAGE_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


def fetch_ood_set(source: str, root: str) -> None:
    """Make sure that a set is at hand; raises `AbsentFile` where it cannot be had.

    A published one is downloaded below `root` where it is absent.
    """
    if source == "tiny_imagenet":
        fetch_tiny_imagenet(root)
    elif source in PUBLISHED:
        fetch(root, PUBLISHED[source])
    elif not Path(source).exists():
        raise AbsentFile(
            f"there is no file or folder {source}; give a path that exists, or one of the names "
            f"{', '.join(sorted(PUBLISHED))}."
        )


def read_ood_set(source: str, root: str, input_shape: tuple[int, ...]) -> Tensor:
    """All images of a set, uint8 [N, *input_shape]; one that is published is checked first."""
    if len(input_shape) != 3 or input_shape[0] not in (1, 3):
        raise InputError(
            f"{source} holds images, which do not fit inputs of shape {input_shape}; they fit (1 "
            "or 3 channels, height, width)."
        )
    fetch_ood_set(source, root)
    path = find(root, PUBLISHED[source]) if source in PUBLISHED else Path(source)
    if path.is_dir():
        return read_folder(path, input_shape)
    images = _reader(path)(path)
    if len(images) == 0:
        raise InputError(f"{path} holds no images; an OOD set needs at least one.")
    return fit_images(images, input_shape)


def fit_images(images: Tensor, input_shape: tuple[int, ...]) -> Tensor:
    """Bring uint8 images [N, 1 or 3, H, W] to another shape.

    Grey is repeated, colours are averaged, other sizes are resized.

    >>> fit_images(torch.full((5, 1, 28, 28), 7, dtype=torch.uint8), (3, 32, 32)).shape
    torch.Size([5, 3, 32, 32])
    >>> pixel = torch.tensor([10, 20, 60], dtype=torch.uint8).reshape(1, 3, 1, 1)
    >>> fit_images(pixel, (1, 1, 1)).item()
    30
    """
    if images.shape[1] == 3 and input_shape[0] == 1:
        images = (images.sum(1, keepdim=True, dtype=torch.int16) / 3).round().to(torch.uint8)
    if images.shape[2:] != input_shape[1:]:
        images = F.interpolate(images, size=input_shape[1:], mode="bilinear", antialias=True)
    return images.expand(-1, input_shape[0], -1, -1)


def read_folder(folder: Path, input_shape: tuple[int, ...]) -> Tensor:
    """All images in a folder and the folders in it, in the order of their paths.

    They may differ in size.
    """
    named = (path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_ENDINGS)
    paths = sorted(path for path in named if path.is_file())
    if not paths:
        raise InputError(
            f"{folder} holds no images; their names must end in one of {', '.join(IMAGE_ENDINGS)}."
        )
    return torch.cat([fit_images(read_image(path), input_shape) for path in paths])


def read_image(path: Path) -> Tensor:
    """One image file, uint8 [1, 3, H, W]."""
    return torch.from_numpy(decode_image(path, "RGB", str(path))).permute(2, 0, 1)[None]


def read_cifar(path: Path) -> Tensor:
    """The images of a file in CIFAR's binary version.

    Records of CIFAR-10 have one label byte, those of CIFAR-100 two; the labels tell which.
    """
    content = np.fromfile(path, dtype=np.uint8)
    for classes in CIFAR_LABELS:
        record = len(classes) + 3 * 32 * 32
        if len(content) % record == 0:
            records = content.reshape(-1, record)
            if (records[:, : len(classes)] < classes).all():
                return torch.from_numpy(records[:, len(classes) :].reshape(-1, 3, 32, 32).copy())
    raise InputError(
        f"{path} ({len(content)} bytes) is not in CIFAR's binary version, whose records have 3073 "
        "bytes (CIFAR-10) or 3074 (CIFAR-100) "
        "and start with their labels; it was cut short or is something else."
    )


def read_svhn(path: Path) -> Tensor:
    """The images X [32, 32, 3, N] of a Matlab file in the layout of SVHN's cropped digits.

    Nothing but numbers is taken from it.
    """
    try:
        # headers alone: cells within cells would crash scipy
        listed = [(shape, kind) for name, shape, kind in whosmat(path) if name == "X"]
        bytes_only = [len(shape) == 4 and kind == "uint8" for shape, kind in listed] == [True]
        images = loadmat(path, variable_names=["X"]).get("X") if bytes_only else None
    except Exception as error:  # of many types: scipy has no single one for files it cannot read
        raise InputError(
            f"{path} cannot be read as a Matlab file (version 7.2 or older); it was cut short or "
            "is something else."
        ) from error
    colour = isinstance(images, np.ndarray) and images.ndim == 4 and images.shape[2] == 3
    if images is None or not colour or images.dtype != np.uint8:
        raise InputError(
            f"{path} is not in SVHN's layout; it must hold X, bytes of shape height x width x 3 x "
            "N."
        )
    return torch.from_numpy(np.ascontiguousarray(images.transpose(3, 2, 0, 1)))


def read_idx_images(path: Path) -> Tensor:
    """Grey images of an IDX file, [N, 1, H, W]."""
    images = read_idx(path)
    if images.ndim != 3:
        raise InputError(
            f"{path} has {images.ndim} dimension(s), so it holds no images; name the file of "
            "images (idx3)."
        )
    return torch.from_numpy(images)[:, None]


def _reader(path: Path) -> Callable[[Path], Tensor]:
    if path.suffix == ".mat":
        return read_svhn
    if path.suffix == ".bin":
        return read_cifar
    if path.suffix == ".npz":
        return read_tiny_imagenet
    if path.suffix in (".gz", ".idx") or path.name.endswith("ubyte"):
        return read_idx_images
    raise InputError(
        f"{path} is of no kind that is known here: a folder of images, an idx file (.gz, .idx, "
        "ubyte), CIFAR's .bin, SVHN's .mat, or Tiny ImageNet's .npz."
    )
