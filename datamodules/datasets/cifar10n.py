"""CIFAR-10N: the 50,000 CIFAR-10 training images with three people's labels each.

Wei et al. 2022; CC BY-NC 4.0. Votes as sparse as most datasets have them, which CIFAR-10H's many
votes on the test images then judge.
"""

from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.serialization import safe_globals

from core.compat import reconstruct_array
from core.errors import InputError, name_rows
from datamodules.datasets.cifar10h import ARCHIVE, ARCHIVE_SHA256, CIFAR10H, read_cifar_batch
from datamodules.io.files import PublishedFile, find
from datamodules.pixels import PixelDataModule
from datamodules.votes.annotations import count_votes
from datamodules.votes.table import VoteTable

VOTES = ("random_label1", "random_label2", "random_label3")  # who gave them is not published
ENTROPY_BINS = 10  # that the validation images are drawn evenly from
# all that the published file needs to be unpickled: plain arrays of whole numbers
ARRAYS = [
    (reconstruct_array, "numpy.core.multiarray._reconstruct"),
    (np.ndarray, "numpy.ndarray"),
    (np.dtype, "numpy.dtype"),
    type(np.dtype(np.int64)),
]


class CIFAR10N(PixelDataModule):
    """CIFAR-10N from pixels: trained and validated by three votes an image, tested on CIFAR-10H.

    The files are `cifar-10n/CIFAR-10_human.pt`, the official *binary* CIFAR-10 batches, and those
    of CIFAR10H, below `root`. Validation images are training images of CIFAR-10N's own, with their
    three votes: no vote of CIFAR-10H has a part in any choice. All of CIFAR-10H is the test part.
    """

    num_classes = CIFAR10H.num_classes
    input_shape = CIFAR10H.input_shape
    mean, std = CIFAR10H.mean, CIFAR10H.std
    class_names = CIFAR10H.class_names
    # The address was looked up and is untried.
    LABELS: ClassVar = PublishedFile(
        "cifar-10n/CIFAR-10_human.pt",
        "873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310",
        "https://raw.githubusercontent.com/UCSC-REAL/cifar-10-100n/main/data/CIFAR-10_human.pt",
    )
    IMAGES: ClassVar = tuple(
        PublishedFile(
            f"cifar-10-batches-bin/data_batch_{number}.bin",
            digest,
            ARCHIVE,
            archive_sha256=ARCHIVE_SHA256,
        )
        for number, digest in enumerate(
            (
                "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
                "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
            ),
            start=1,
        )
    )

    def __init__(
        self, root: str = "data", val_fraction: float = 0.1, augment: bool = True, **kwargs
    ):
        """
        Args:
            root: The folder that holds `cifar-10n`, `cifar-10-batches-bin` and `cifar-10h`; files
                that are absent are downloaded to it.
            val_fraction: Share of the 50,000 images that validates, stratified by majority class
                and entropy.
            augment: Crop and flip training images at random.
        """
        super().__init__(augment=augment, **kwargs)
        self.root, self.val_fraction = root, val_fraction

    def prepare_data(self) -> None:
        """Download what is absent, in one process."""
        for file in (self.LABELS, *self.IMAGES, CIFAR10H.COUNTS, CIFAR10H.IMAGES):
            find(self.root, file)

    def read(self) -> tuple[Tensor, VoteTable]:
        """CIFAR-10's training images with three votes each, then its test images with those of
        CIFAR-10H.
        """
        path = find(self.root, self.LABELS)
        batches = [read_cifar_batch(find(self.root, file)) for file in self.IMAGES]
        labels, counts = read_human_labels(path, self.num_classes)
        published = np.concatenate([given for _, given in batches])
        if len(labels) != len(published) or (labels != published).any():
            raise InputError(
                f"the clean_label of {path} is not what CIFAR-10's training batches say; their "
                "images are others, or in another order."
            )
        tested, judged = CIFAR10H(root=self.root).read()
        assert judged.counts is not None
        votes = VoteTable(
            np.concatenate([counts, judged.counts]), source=f"{path} and {judged.source}"
        )
        return torch.cat([*(images for images, _ in batches), tested]), votes

    def split(self, votes: VoteTable) -> dict[str, np.ndarray]:
        """By `val_fraction`; the test part are the images with more than three votes."""
        return split_by_votes(votes, self.val_fraction, self.seed)

    def high_disagreement(self, quantile: float = 0.9) -> np.ndarray:
        """By the quantile of CIFAR-10H's images for these, and of CIFAR-10N's own for its own."""
        assert self.corpus is not None
        return high_disagreement_by_votes(self.corpus.votes, quantile)


def split_by_votes(votes: VoteTable, val_fraction: float, seed: int) -> dict[str, np.ndarray]:
    """CIFAR-10N's images, which have three votes, train and validate; CIFAR-10H's many test.

    >>> table = VoteTable([[3, 0], [2, 1], [0, 3], [1, 2], [40, 10], [9, 41]])
    >>> {part: len(rows) for part, rows in split_by_votes(table, 0.25, seed=0).items()}
    {'train': 3, 'val': 1, 'test': 2}
    """
    assert votes.counts is not None
    few = votes.counts.sum(1) == len(VOTES)
    own = np.flatnonzero(few)
    parts = votes.take(own).split([1 - val_fraction, val_fraction], seed, ENTROPY_BINS)
    return {"train": own[parts[0]], "val": own[parts[1]], "test": np.flatnonzero(~few)}


def high_disagreement_by_votes(votes: VoteTable, quantile: float) -> np.ndarray:
    """A mask of the items whose entropy reaches the quantile of those with votes as many.

    Three votes know three levels of entropy, which say nothing of where those of 51 are high.
    """
    assert votes.counts is not None
    few = votes.counts.sum(1) == len(VOTES)
    result = np.zeros(len(votes), bool)
    for rows in (few, ~few):
        result[rows] = votes.take(rows).high_disagreement(quantile)
    return result


def read_human_labels(path: Path, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """CIFAR-10's own labels [N], and how many of three people chose each class [N, classes].

    The file holds pickled numpy arrays. It is unpickled by torch's reader of weights, which makes
    plain arrays and nothing else.
    """
    try:
        with safe_globals(ARRAYS):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of many types, on files that are cut short, altered or hold code
        raise InputError(
            f"{path} is no file of plain arrays, or was cut short; nothing in it was loaded."
        ) from error
    found = content if isinstance(content, dict) else {}
    columns = [found.get(name) for name in ("clean_label", *VOTES)]
    lengths = {_length(column) for column in columns}
    if None in lengths or len(lengths) != 1 or lengths == {0}:
        raise InputError(
            f"{path} must hold clean_label, {', '.join(VOTES)}, each a row of whole numbers, one "
            "for each image; it was altered or is something else."
        )
    table = np.stack(columns)  # pyright: ignore[reportArgumentType, reportCallIssue]
    wrong = ((table < 0) | (table >= classes)).any(0)
    if wrong.any():
        raise InputError(
            f"{path} has labels that are no class in {name_rows(np.flatnonzero(wrong))}; they must "
            f"be from 0 to {classes - 1}."
        )
    items = np.tile(np.arange(table.shape[1]), len(VOTES))
    return table[0], count_votes(items, table[1:].ravel(), table.shape[1], classes)


def _length(column: object) -> int | None:
    """Of a row of whole numbers; None of anything else."""
    if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "iu":
        return len(column)
    return None
