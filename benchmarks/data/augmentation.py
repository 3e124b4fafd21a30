"""Augmented 32 x 32 batches: TensorLoader with CropFlip, against torchvision's transforms in a
DataLoader.

Both make one epoch of 10,000 byte images into standardised float batches of 128 after a random crop
(padding 4) and flip. The peer transforms one item at a time, in the form that is faster here: PIL
images, as torchvision's own CIFAR10 dataset gives them, or byte tensors (v2). TensorLoader is
measured with one thread and with all: more are faster on an idle machine, far slower where other
work holds one of them up. The verdict is on the faster.

    python -m benchmarks.data.augmentation        about 40 seconds

Target: at least 20 times the images per second of the peer without workers, and more than the peer
with two workers.
"""

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
from torchvision.transforms import v2

from benchmarks.measure import best_of, verdict
from datamodules.loading import TensorLoader
from datamodules.order import BatchOrder
from datamodules.preparation import CropFlip

ITEMS, BATCH = 10_000, 128
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class PILImages(Dataset):
    """The peer's usual way: PIL images, one at a time."""

    transform = transforms.Compose(
        [
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )

    def __init__(self, images: Tensor):
        self.images = images.permute(0, 2, 3, 1).contiguous().numpy()

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, item: int):
        return self.transform(Image.fromarray(self.images[item])), item


class TensorImages(Dataset):
    """The peer's faster way: tensors through torchvision's v2 transforms."""

    transform = v2.Compose(
        [
            v2.RandomCrop(32, padding=4),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )

    def __init__(self, images: Tensor):
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, item: int):
        return self.transform(self.images[item]), item


def tensor_loader_rate(images: Tensor, threads: int) -> float:
    """Images per second of the package's own path."""
    order = BatchOrder(torch.arange(ITEMS), BATCH, seed=0, shuffle=True)
    loader = TensorLoader(CropFlip(images, MEAN, STD, scale=255, seed=0), order)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    rate = epoch_rate(loader, order.set_epoch)
    torch.set_num_threads(before)
    return rate


def data_loader_rate(dataset: Dataset, workers: int) -> float:
    """Images per second of the peer."""
    return epoch_rate(
        DataLoader(
            dataset, BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0
        )
    )


def epoch_rate(loader, set_epoch=lambda epoch: None) -> float:
    """Images per second over a whole epoch: the best of three after one that warms up."""

    def run_epoch(epoch: int) -> None:
        set_epoch(epoch)
        assert sum(len(inputs) for inputs, _ in loader) == ITEMS

    run_epoch(0)
    return ITEMS / best_of(3, lambda repeat: run_epoch(repeat + 1))


def main() -> None:
    """Measure all ways, and print their rates and ratios."""
    images = torch.from_numpy(
        np.random.default_rng(0).integers(256, size=(ITEMS, 3, 32, 32), dtype=np.uint8)
    )
    forms = {"PIL": PILImages(images), "tensor v2": TensorImages(images)}
    ours = {
        threads: tensor_loader_rate(images, threads)
        for threads in sorted({1, torch.get_num_threads()})
    }
    peers = {
        workers: {form: data_loader_rate(dataset, workers) for form, dataset in forms.items()}
        for workers in (0, 2)
    }

    print(f"{ITEMS:,} synthetic images of 3 x 32 x 32 bytes in batches of {BATCH}\n")
    for threads, rate in ours.items():
        print(f"{f'TensorLoader with CropFlip, threads: {threads}':40s}{rate:12,.0f} images/s")
    for workers, rates in peers.items():
        for form, rate in rates.items():
            print(f"{f'torchvision {form}, workers: {workers}':40s}{rate:12,.0f} images/s")
    print()
    for workers, target, wanted in ((0, 20, "20x"), (2, 1, "above 1x")):
        form = max(forms, key=peers[workers].__getitem__)
        ratios = {threads: rate / peers[workers][form] for threads, rate in ours.items()}
        listed = ", ".join(
            f"{ratio:.1f}x with {threads} thread(s)" for threads, ratio in ratios.items()
        )
        reached = verdict(max(ratios.values()) > target)
        print(
            f"augmented batches: {listed}, of torchvision {form} with {workers} workers (target "
            f"{wanted}): {reached}"
        )


if __name__ == "__main__":
    main()
