"""Augmented 32 x 32 batches: TensorLoader with CropFlip, against what users of torchvision and of
plain torch do.

All make one epoch of 10,000 byte images into standardised float batches of 128 after a random crop
(padding 4) and a random flip. The peers:

- torchvision's v2 transforms on whole batches: one crop and one flip for all 128 images, which is
  less than what CropFlip does;
- plain torch: all images standardised and padded once, then a slice of each, stacked, and flips by
  a mask (faster here than indexing by coordinates, and than cropping a whole epoch by masks);
- v2 transforms item by item in a DataLoader, without workers and with two, which have a core each.

One thread on all sides but for the DataLoader's workers.

    python -m benchmarks augmentation        about 40 seconds
"""

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from benchmarks.measure import alternate
from benchmarks.row import Row, main
from datamodules.loading import TensorLoader
from datamodules.order import BatchOrder
from datamodules.preparation import CropFlip

ITEMS, BATCH, SIZE, PADDING = 10_000, 128, 32, 4
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
AUGMENT = v2.Compose(
    [
        v2.RandomCrop(SIZE, padding=PADDING),
        v2.RandomHorizontalFlip(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ]
)
WHOLE = "torchvision v2 on whole batches"
LIMITS = {WHOLE: 1.0, "plain torch, slices stacked": 1.0}
NOTES = {WHOLE: "the peer crops and flips all images of a batch alike"}


class Images(Dataset):
    """Images that torchvision transforms one at a time."""

    def __init__(self, images: Tensor):
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, item: int):
        return AUGMENT(self.images[item]), item


def rows() -> Iterator[Row]:
    """An epoch of our batches, against each peer's."""
    images = torch.from_numpy(
        np.random.default_rng(0).integers(256, size=(ITEMS, 3, SIZE, SIZE), dtype=np.uint8)
    )
    sides: dict[str, Callable[[], Iterator[Tensor]]] = {
        "ours": ours(images),
        WHOLE: lambda: (AUGMENT(images[index]) for index in torch.randperm(ITEMS).split(BATCH)),
        "plain torch, slices stacked": slices(images),
    }
    for workers in (0, 2):
        loader = DataLoader(
            Images(images), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0
        )
        name = f"torchvision v2 item by item, DataLoader, {workers} workers"
        sides[name] = lambda loader=loader: (inputs for inputs, _ in loader)
    seconds = alternate(3, {name: lambda side=side: drain(side) for name, side in sides.items()})
    for peer, theirs in seconds.items():
        if peer != "ours":
            yield Row(
                f"augmented batches of {BATCH}, {ITEMS:,} images of 3 x 32 x 32",
                peer,
                seconds["ours"],
                theirs,
                LIMITS.get(peer),
                NOTES.get(peer, ""),
            )


def drain(epoch: Callable[[], Iterator[Tensor]]) -> None:
    """Go through all batches of an epoch."""
    assert sum(len(inputs) for inputs in epoch()) == ITEMS


def ours(images: Tensor) -> Callable[[], Iterator[Tensor]]:
    """The package's own path."""
    order = BatchOrder(torch.arange(ITEMS), BATCH, seed=0, shuffle=True)
    loader, epochs = TensorLoader(CropFlip(images, MEAN, STD, scale=255, seed=0), order), count()

    def epoch() -> Iterator[Tensor]:
        order.set_epoch(next(epochs))
        return (inputs for inputs, _ in loader)

    return epoch


def slices(images: Tensor) -> Callable[[], Iterator[Tensor]]:
    """A crop and a flip for each image, in plain torch."""
    mean, std = (torch.tensor(values).reshape(1, 3, 1, 1) for values in (MEAN, STD))
    padded = F.pad((images / 255 - mean) / std, (PADDING,) * 4)

    def epoch() -> Iterator[Tensor]:
        for index in torch.randperm(ITEMS).split(BATCH):
            corners = torch.randint(2 * PADDING + 1, (2, len(index))).tolist()
            crops = torch.stack(
                [
                    padded[item, :, down : down + SIZE, right : right + SIZE]
                    for item, down, right in zip(index.tolist(), *corners, strict=True)
                ]
            )
            flip = torch.rand(len(index), 1, 1, 1) < 0.5
            yield torch.where(flip, crops.flip(-1), crops)

    return epoch


if __name__ == "__main__":
    main(rows)
