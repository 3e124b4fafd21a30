"""Fashion-MNIST-H: the 10,000 Fashion-MNIST test images with 53 to 79 human votes each.

Ishida et al. 2023. People agree with Fashion-MNIST's own label on 82 % of the images: on this
dataset votes differ widely.
"""

import warnings
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from datamodules.corpus import held_out_split
from datamodules.io.files import PublishedFile, find
from datamodules.io.idx import read_idx
from datamodules.io.ood_sets import PUBLISHED
from datamodules.pixels import PixelDataModule
from datamodules.votes.table import VoteTable


class FashionMNISTH(PixelDataModule):
    """Fashion-MNIST-H, with its images from pixels.

    The files are `fashion-mnist-h/fmh_counts.csv` and Fashion-MNIST's test images below `root`.

    As with CIFAR10H, the evaluation part of the stratified split serves for validation and test
    alike: the checkpoint is chosen on it.
    """

    num_classes = 10
    input_shape = (1, 28, 28)
    mean, std = (0.2860,), (0.3530,)  # of the Fashion-MNIST training images
    class_names = (
        "T-shirt/top", "trouser", "pullover", "dress", "coat",
        "sandal", "shirt", "sneaker", "bag", "ankle boot",
    )  # fmt: skip
    # The address was looked up and is untried.
    COUNTS: ClassVar = PublishedFile(
        "fashion-mnist-h/fmh_counts.csv",
        "bec7efff5d6f901a6224758d71caadb436dbd8de1284b0be7089d193be94ddbc",
        "https://raw.githubusercontent.com/takashiishida/irreducible/main/data/fmh_counts.csv",
    )
    IMAGES: ClassVar = PUBLISHED["fashion_mnist"]

    def __init__(
        self, root: str = "data", eval_fraction: float = 0.2, augment: bool = False, **kwargs
    ):
        """
        Args:
            root: The folder that holds `fashion-mnist-h` and `fashion-mnist`; files that are absent
                are downloaded to it.
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
        counts, images = find(self.root, self.COUNTS), find(self.root, self.IMAGES)
        votes, pixels = read_counts(counts), read_idx(images)
        if pixels.shape != (len(votes), *type(self).input_shape[1:]):
            raise InputError(
                f"{images} holds bytes of shape {pixels.shape} but {counts} has {len(votes)} rows; "
                "they must be the images that people voted on, of 28 x 28 pixels."
            )
        return torch.from_numpy(pixels)[:, None], votes

    def split(self, votes: VoteTable) -> dict[str, np.ndarray]:
        """The held-out part is validation and test in one."""
        return held_out_split(votes, self.eval_fraction, self.seed)


def read_counts(path: Path) -> VoteTable:
    """Whole numbers that commas separate, a row for each item and no head."""
    try:
        # numpy warns of a table without rows, and goes on
        with warnings.catch_warnings(action="error"):
            counts = np.loadtxt(path, np.int64, comments=None, delimiter=",", ndmin=2)
    except (OSError, ValueError, OverflowError, UserWarning, DeprecationWarning) as error:
        raise InputError(
            f"{path} is no table of whole numbers that commas separate; it was cut short or "
            "altered."
        ) from error
    return VoteTable(counts, source=str(path))
