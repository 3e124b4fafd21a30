"""CIFAR-10H: the 10,000 CIFAR-10 test images with about 51 human votes each.

Peterson et al. 2019; CC BY-NC-SA 4.0.
"""

from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from datamodules.corpus import held_out_split
from datamodules.io.files import PublishedFile, find, read_array
from datamodules.pixels import PixelDataModule
from datamodules.votes.table import VoteTable

RECORD = 1 + 3 * 32 * 32  # CIFAR-10's binary version: a label byte, then the pixels, channels first
ARCHIVE = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
ARCHIVE_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"


class CIFAR10H(PixelDataModule):
    """CIFAR-10H, with its images from pixels.

    The files are `cifar-10h/cifar10h-counts.npy` and the official *binary* CIFAR-10 test batch
    below `root`.

    The evaluation part of the stratified split serves for validation and test alike, as in the
    paper: the checkpoint is chosen on it.
    """

    num_classes = 10
    input_shape = (3, 32, 32)
    # of the CIFAR-10 training images; the paper says only that images are normalised
    mean = (0.4914, 0.4822, 0.4465)
    std = (0.2470, 0.2435, 0.2616)
    class_names = (
        "airplane", "automobile", "bird", "cat", "deer",
        "dog", "frog", "horse", "ship", "truck",
    )  # fmt: skip
    COUNTS: ClassVar = PublishedFile(
        "cifar-10h/cifar10h-counts.npy",
        "9b36b4550349af56c79083356312eb4af856cc5fd3caf1f669d40b9d0bbb69ff",
        "https://github.com/jcpeterson/cifar-10h/raw/master/data/cifar10h-counts.npy",
    )
    IMAGES: ClassVar = PublishedFile(
        "cifar-10-batches-bin/test_batch.bin",
        "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        ARCHIVE,
        archive_sha256=ARCHIVE_SHA256,
    )

    def __init__(
        self, root: str = "data", eval_fraction: float = 0.2, augment: bool = True, **kwargs
    ):
        """
        Args:
            root: The folder that holds `cifar-10h` and `cifar-10-batches-bin`; files that are
                absent are downloaded to it.
            eval_fraction: Share of the images held out for evaluation.
            augment: Crop and flip training images at random.
        """
        super().__init__(augment=augment, **kwargs)
        self.root, self.eval_fraction = root, eval_fraction

    def prepare_data(self) -> None:
        """Download what is absent, in one process."""
        find(self.root, self.COUNTS)
        find(self.root, self.IMAGES)

    def read(self) -> tuple[Tensor, VoteTable]:
        """The images as bytes, and their votes."""
        counts = find(self.root, self.COUNTS)
        images = read_cifar_binary(find(self.root, self.IMAGES))
        votes = VoteTable(read_array(counts), source=str(counts))
        if len(images) != len(votes):
            raise InputError(
                f"there are {len(images)} inputs but {counts} has {len(votes)} rows; they must be "
                "the same items."
            )
        return images, votes

    def split(self, votes: VoteTable) -> dict[str, np.ndarray]:
        """The held-out part is validation and test in one."""
        return held_out_split(votes, self.eval_fraction, self.seed)


def read_cifar_binary(path: Path) -> Tensor:
    """The images of a CIFAR-10 binary batch, uint8 [N, 3, 32, 32]. No pickle is involved."""
    return read_cifar_batch(path)[0]


def read_cifar_batch(path: Path) -> tuple[Tensor, np.ndarray]:
    """The images of a CIFAR-10 binary batch and their label bytes [N]."""
    content = np.fromfile(path, dtype=np.uint8)
    if len(content) == 0 or len(content) % RECORD:
        raise InputError(
            f"{path} has {len(content)} bytes; a CIFAR-10 binary batch is a multiple of {RECORD}, "
            "so it was cut short."
        )
    records = content.reshape(-1, RECORD)
    return torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()), records[:, 0].copy()
