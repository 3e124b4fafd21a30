"""Images from pixels, whole in memory: augmented a batch at a time, or made smaller."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from datamodules.corpus import Corpus
from datamodules.io.ood_sets import fit_images
from datamodules.vote_datamodule import VoteDataModule
from datamodules.votes.table import VoteTable

SIDES = (8, 256)  # of images, in pixels: networks take neither fewer nor, here, more


class PixelDataModule(VoteDataModule):
    """Turns images into inputs; a dataset says how its images and votes are read and split.

    `input_shape` of the class is that of the published images.
    """

    mean: tuple[float, ...]  # of each channel over many images, on the scale from 0 to 1
    std: tuple[float, ...]

    def __init__(self, augment: bool, image_side: int | None = None, **kwargs):
        """
        Args:
            augment: Crop and flip training images at random: they are shifted by at most an eighth
                of their side, and every second one is mirrored.
            image_side: Height and width that images are brought to, in pixels; null for their own.
        """
        super().__init__(**kwargs)
        if image_side is not None and not SIDES[0] <= image_side <= SIDES[1]:
            raise InputError(
                f"data.image_side is {image_side}; it must be from {SIDES[0]} to {SIDES[1]}, or "
                "null for the images' own side."
            )
        self.augment, self.image_side = augment, image_side
        if image_side is not None:
            self.input_shape = (self.input_shape[0], image_side, image_side)

    @abstractmethod
    def read(self) -> tuple[Tensor, VoteTable]:
        """The images as published, bytes [N, 1 or 3, height, width], and their votes, checked."""

    @abstractmethod
    def split(self, votes: VoteTable) -> dict[str, np.ndarray]:
        """Row numbers of train, val and test, by `self.seed`."""

    def original(self, rows: Sequence[int] | np.ndarray) -> list[str] | Tensor:
        """The images as published, neither cropped nor resized; grey ones in three channels."""
        return self.read()[0][torch.as_tensor(rows)].expand(-1, 3, -1, -1)

    def load(self) -> Corpus:
        """Bytes in memory; training images are cropped and flipped where that is asked for."""
        images, votes = self.read()
        return Corpus(
            inputs=fit_images(images, self.input_shape),
            votes=votes,
            splits=self.split(votes),
            mean=self.mean,
            std=self.std,
            scale=255,
            augment=self.augment,
            padding=self.input_shape[-1] // 8,
        )
