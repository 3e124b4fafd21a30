"""A dataset of small grey images and a set of others, for tests of what looks at both."""

from pathlib import Path

import numpy as np
import torch

from datamodules import VoteDataModule
from datamodules.vote_datamodule import Corpus
from datamodules.votes.table import VoteTable
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import SimpleFFN
from tests.datamodules.io.test_idx import idx_bytes

TRAIN, TEST, NOISE = 90, 40, 25


class Patches(VoteDataModule):
    """Small grey images in three classes, stored as bytes or, at `scale` 16, as floats."""

    num_classes = 3
    input_shape = (1, 8, 8)

    def __init__(self, scale: float = 255, **kwargs):
        super().__init__(batch_size=32, **kwargs)
        self.scale = scale

    def load(self) -> Corpus:
        rng = np.random.default_rng(3)
        classes = np.arange(TRAIN + TEST) % 3
        images = rng.integers(60, size=(TRAIN + TEST, 1, 8, 8)) + 90 * classes[:, None, None, None]
        stored = torch.from_numpy(images.astype(np.uint8))
        return Corpus(
            inputs=stored if self.scale == 255 else stored.float() * (self.scale / 255),
            votes=VoteTable(rng.multinomial(20, np.eye(3)[classes] * 0.7 + 0.1)),
            splits={
                "train": np.arange(TRAIN),
                "val": np.arange(TRAIN, TRAIN + TEST),
                "test": np.arange(TRAIN, TRAIN + TEST),
            },
            mean=(0.4,),
            std=(0.3,),
            scale=self.scale,
        )


def ready_patches(scale: float = 255) -> Patches:
    data = Patches(scale)
    data.setup()
    return data


def classifier_of(data: VoteDataModule, network=SimpleFFN) -> AnnotatorClassifier:
    return AnnotatorClassifier(data.input_shape, data.num_classes, network)


def write_noise(folder: Path) -> str:
    """Images unlike the data, as an idx file."""
    path = folder / "noise.idx"
    path.write_bytes(
        idx_bytes(np.random.default_rng(0).integers(256, size=(NOISE, 8, 8), dtype=np.uint8))
    )
    return str(path)
