"""Where the images of a corpus of digits come from: MNIST, Ambiguous-MNIST and ARDIS by their
published files, each in one common form.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from core.errors import InputError
from datamodules.io.files import PublishedFile, fetch, sha256
from datamodules.io.mnist import DIGITS, FILES, SIDE, read_mnist
from datamodules.io.tables import refuse

RELEASE = "https://github.com/BlackHC/ddu_dirty_mnist/releases/download/data-v1.0.0"
# In the folder that the authors' package downloads them to. They publish md5 sums alone, so what is
# in the files is checked instead.
AMBIGUOUS = (
    PublishedFile("AmbiguousMNIST/amnist_samples.pt", None, f"{RELEASE}/amnist_samples.pt"),
    PublishedFile("AmbiguousMNIST/amnist_labels.pt", None, f"{RELEASE}/amnist_labels.pt"),
)
AMBIGUOUS_TRAIN = (
    6_000  # the authors' package cuts 12,000 images x 10 labels after the first 60,000 labels
)
ARDIS = {
    part: (f"ardis/ARDIS_{part}_2828.csv", f"ardis/ARDIS_{part}_labels.csv")
    for part in ("train", "test")
}
PUBLISHED = ("mnist", "mukhoti", "ardis")  # mukhoti is what soft-digits calls Ambiguous-MNIST


@dataclass(frozen=True)
class Source:
    """Images with the labels that they came with."""

    name: str
    images: np.ndarray  # uint8 [N, 28, 28]
    labels: np.ndarray  # a distribution over ten digits each, [N, 10]
    # the part that its authors put it in: train, test; or "made" where there are none
    part: np.ndarray

    def __len__(self) -> int:
        return len(self.images)

    @property
    def digits(self) -> np.ndarray:
        """The likeliest digit of each image."""
        return self.labels.argmax(1)


def read_source(name: str, root: str) -> Source:
    """A published source by its name, from the files below `root`."""
    return {"mnist": mnist_source, "mukhoti": ambiguous_source, "ardis": ardis_source}[name](root)


def source_digests(name: str, root: str) -> list[str]:
    """What the files of a source hold, as digests: those of MNIST are known and it is checked by
    them whenever it is read.
    """
    if name == "mnist":
        return [str(file.sha256) for files in FILES.values() for file in files]
    paths = (
        [fetch(root, file) for file in AMBIGUOUS]
        if name == "mukhoti"
        else [Path(root) / file for pair in ARDIS.values() for file in pair]
    )
    for path in paths:
        if not path.exists():
            raise InputError(
                f"{path} is absent; put the files of ARDIS's dataset IV there by hand, or leave "
                f"{name} out of the sources."
            )
    return [sha256(path) for path in paths]


def mnist_source(root: str) -> Source:
    """Both parts of MNIST, 70,000 images with one digit each."""
    parts = {part: read_mnist(root, part) for part in FILES}
    images, digits = (
        np.concatenate([getattr(result, field) for result in parts.values()])
        for field in ("images", "digits")
    )
    part = np.repeat(list(parts), [len(result.digits) for result in parts.values()])
    return Source("mnist", images, np.eye(DIGITS)[digits], part)


def ambiguous_source(root: str) -> Source:
    """Ambiguous-MNIST (Mukhoti et al. 2023) without noise.

    Each image has ten labels, drawn from a model's softmax: their shares are its distribution.
    """
    images, labels = (_tensor(fetch(root, file)) for file in AMBIGUOUS)
    where = [Path(root) / file.path for file in AMBIGUOUS]
    fractions = images.dtype.is_floating_point
    if images.shape[1:] != (1, SIDE, SIDE) or not fractions or len(images) == 0:
        raise InputError(
            f"{where[0]} holds {images.dtype} {list(images.shape)}; it must hold grey images as "
            "fractions, [N, 1, 28, 28]."
        )
    some_each = labels.ndim == 2 and len(labels) == len(images) and labels.shape[1] > 0
    if not some_each or labels.dtype.is_floating_point:
        raise InputError(
            f"{where[1]} holds {labels.dtype} {list(labels.shape)}; it must hold whole labels of "
            f"each of {len(images)} images."
        )
    flat, drawn = images.flatten(1).double().numpy(), labels.numpy()
    noisy = np.flatnonzero(~((flat >= 0) & (flat <= 1)).all(1))
    refuse(noisy, where[0], "grey values outside 0 to 1", "it must be published without noise")
    other = np.flatnonzero(~np.isin(drawn, np.arange(DIGITS)).all(1))
    refuse(other, where[1], "labels that are no digit", "they must be from 0 to 9")
    shares = (drawn[:, :, None] == np.arange(DIGITS)).mean(1)
    part = np.where(np.arange(len(flat)) < AMBIGUOUS_TRAIN, "train", "test")
    grey = np.rint(flat * 255).astype(np.uint8).reshape(-1, SIDE, SIDE)
    return Source("mukhoti", grey, shares, part)


def ardis_source(root: str) -> Source:
    """ARDIS's dataset IV (Kusetogullari et al. 2020).

    Its files hold rows of 784 grey values, and of ten numbers one of which is 1, between blanks.
    """
    images, labels, parts = [], [], []
    for part, (pixels, digits) in ARDIS.items():
        grey = _numbers(Path(root) / pixels, SIDE * SIDE)
        shown = _numbers(Path(root) / digits, DIGITS)
        if len(grey) != len(shown):
            raise InputError(
                f"{Path(root) / pixels} has {len(grey)} rows, but {Path(root) / digits} has "
                f"{len(shown)}; they must be the same items."
            )
        other = np.flatnonzero(~np.isin(grey, np.arange(256)).all(1))
        allowed = "they must be whole numbers from 0 to 255"
        refuse(other, Path(root) / pixels, "other values than grey ones", allowed)
        other = np.flatnonzero((np.sort(shown, axis=1) != np.eye(DIGITS)[-1]).any(1))
        allowed = "one of the ten numbers must be 1 and the others 0"
        refuse(other, Path(root) / digits, "labels that are no single digit", allowed)
        images.append(grey.astype(np.uint8).reshape(-1, SIDE, SIDE))
        labels.append(shown)
        parts += [part] * len(grey)
    return Source("ardis", np.concatenate(images), np.concatenate(labels), np.array(parts))


def _tensor(path: Path) -> torch.Tensor:
    """A tensor that was saved alone.

    A file that would need unpickling, and so could run code, is refused.
    """
    try:
        result = torch.load(path, map_location="cpu", weights_only=True)
    except (
        Exception
    ) as error:  # torch raises many types on files that are cut short, altered or hold code
        raise InputError(
            f"{path} is no file of plain tensors, or was cut short; nothing in it was loaded."
        ) from error
    if not isinstance(result, torch.Tensor):
        raise InputError(f"{path} holds a {type(result).__name__}; it must hold one tensor.")
    if result.layout != torch.strided or result.is_quantized or result.device.type != "cpu":
        raise InputError(
            f"{path} holds a tensor that is no plain array of numbers; it must hold one that is."
        )
    if result.numel() * result.element_size() > result.untyped_storage().nbytes():
        raise InputError(
            f"{path} announces {result.numel():,} numbers that it does not hold; it was altered."
        )
    return result.detach()


def _numbers(path: Path, columns: int) -> np.ndarray:
    try:
        with warnings.catch_warnings(
            action="error"
        ):  # numpy warns of a table without rows, and goes on
            table = np.loadtxt(path, ndmin=2)
    except (OSError, UnicodeDecodeError, ValueError, UserWarning) as error:
        raise InputError(
            f"{path} is no table of numbers that blanks separate; it is absent, was cut short or "
            "altered."
        ) from error
    if table.shape[1] != columns:
        raise InputError(f"{path} has rows of {table.shape[1]} numbers; each must have {columns}.")
    return table
