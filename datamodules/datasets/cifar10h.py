"""CIFAR-10H: the 10,000 CIFAR-10 test images with about 51 human votes each.

Peterson et al. 2019; CC BY-NC-SA 4.0.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from datamodules.corpus import Corpus
from datamodules.io.files import PublishedFile, find, read_array
from datamodules.vote_datamodule import VoteDataModule
from datamodules.votes.table import VoteTable

RECORD = 1 + 3 * 32 * 32  # CIFAR-10's binary version: a label byte, then the pixels, channels first


class CIFAR10H(VoteDataModule):
    """CIFAR-10H, with its images from pixels.

    The files are `cifar-10h/cifar10h-counts.npy` and the official *binary* CIFAR-10 test batch
    below `root`.

    The evaluation part of the stratified split serves for validation and test alike, as in the
    paper: the checkpoint is chosen on it.
    """

    num_classes = 10
    input_shape = (3, 32, 32)
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
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        archive_sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    )

    def __init__(self, root: str = "data", eval_fraction: float = 0.2, **kwargs):
        """
        Args:
            root: The folder that holds `cifar-10h` and `cifar-10-batches-bin`; files that are
                absent are downloaded to it.
            eval_fraction: Share of the images held out for evaluation.
        """
        super().__init__(**kwargs)
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
        train, held_out = votes.split([1 - self.eval_fraction, self.eval_fraction], self.seed)
        return {"train": train, "val": held_out, "test": held_out}

    def original(self, rows: Sequence[int] | np.ndarray) -> list[str] | Tensor:
        """The images as bytes, neither cropped nor normalised."""
        return self.read()[0][torch.as_tensor(rows)]

    def load(self) -> Corpus:
        """Bytes in memory; training images are cropped and flipped at random."""
        images, votes = self.read()
        return Corpus(
            inputs=images,
            votes=votes,
            splits=self.split(votes),
            # of the CIFAR-10 training images; the paper says only that images are normalised
            mean=(0.4914, 0.4822, 0.4465),
            std=(0.2470, 0.2435, 0.2616),
            scale=255,
            augment=True,
        )


def read_cifar_binary(path: Path) -> Tensor:
    """The images of a CIFAR-10 binary batch, uint8 [N, 3, 32, 32]. No pickle is involved."""
    content = np.fromfile(path, dtype=np.uint8)
    if len(content) == 0 or len(content) % RECORD:
        raise InputError(
            f"{path} has {len(content)} bytes; a CIFAR-10 binary batch is a multiple of {RECORD}, "
            "so it was cut short."
        )
    return torch.from_numpy(content.reshape(-1, RECORD)[:, 1:].reshape(-1, 3, 32, 32).copy())
