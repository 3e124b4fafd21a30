"""From stored inputs to what a network sees, a whole batch at a time.

Here are the normalisation, and random crops and flips.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from core.randomness import generator


class Standardize:
    """Select items, convert to float and standardise each channel: what evaluation sees.

    `scale` is the largest stored value (255 for bytes); mean and std are given on the scale from 0
    to 1.

    >>> stored = torch.tensor([[0], [255]], dtype=torch.uint8)
    >>> prepare = Standardize(stored, mean=[0.5], std=[0.5], scale=255)
    >>> prepare(torch.tensor([1, 0]), epoch=0)
    tensor([[ 1.],
            [-1.]])
    """

    def __init__(self, stored: Tensor, mean: Sequence[float], std: Sequence[float], scale: float):
        channels = (1, len(mean)) + (1,) * (stored.ndim - 2)
        centre = (torch.tensor(mean) * scale).reshape(channels)
        factor = (1 / (torch.tensor(std) * scale)).reshape(channels)
        self._mean, self._factor = centre.to(stored.device), factor.to(stored.device)
        # floats are standardised once, bytes a batch at a time to save memory
        self._ready = stored.is_floating_point()
        changes = bool((centre != 0).any() or (factor != 1).any())
        self.stored = (stored - self._mean) * self._factor if self._ready and changes else stored

    def __call__(self, index: Tensor, epoch: int) -> Tensor:
        """The items of one batch as float32; the epoch plays no part."""
        chosen = self.stored.index_select(0, index.to(self.stored.device))
        return chosen if self._ready else self._standardize(chosen)

    def _standardize(self, values: Tensor) -> Tensor:
        return values.float().sub_(self._mean).mul_(self._factor)


class CropFlip(Standardize):
    """A random crop after zero padding and a random horizontal flip, then `Standardize`.

    For batches of images [B, C, H, W].

    Crops and flips are drawn for all items of an epoch at once, as a function of (seed, epoch):
    they do not depend on the batch size, the rank or where training was interrupted. The padded
    images are kept in both orientations, so that a batch is one indexing operation over a strided
    view of all crops (by numpy on the CPU, where it is faster than torch's; benchmarks/data/
    augmentation.py). The papers do not state the padding; 4 is the custom for 32 x 32 images.
    """

    def __init__(
        self,
        stored: Tensor,
        mean: Sequence[float],
        std: Sequence[float],
        scale: float,
        seed: int,
        padding: int = 4,
    ):
        super().__init__(stored, mean, std, scale)
        self._ready, self._seed, self._padding = False, seed, padding
        padded = F.pad(stored, (padding,) * 4)
        height, width = stored.shape[-2:]
        both = torch.stack([padded, padded.flip(-1)])
        # [2, N, C, rows, columns, H, W], no copy
        self._crops = both.unfold(3, height, 1).unfold(4, width, 1)
        self._draws: tuple[int, tuple[Tensor, ...]] = (-1, ())

    def __call__(self, index: Tensor, epoch: int) -> Tensor:
        """The items of one batch, cropped and flipped as (seed, epoch) say."""
        if self._draws[0] != epoch:
            self._draws = epoch, self._draw(epoch)
        flip, row, column = (draw[index] for draw in self._draws[1])
        if self._crops.device.type != "cpu":
            rows = index.to(self._crops.device)
            return self._standardize(self._crops[flip, rows, :, row, column])
        crops = self._crops.numpy()[flip.numpy(), index.numpy(), :, row.numpy(), column.numpy()]
        return self._standardize(torch.from_numpy(crops))

    def _draw(self, epoch: int) -> tuple[Tensor, ...]:
        rng, items = generator(self._seed, "crop-flip", epoch), len(self.stored)
        draws = (rng.integers(2, size=items), *rng.integers(2 * self._padding + 1, size=(2, items)))
        return tuple(torch.from_numpy(draw).to(self.stored.device) for draw in draws)


class Moments(NamedTuple):
    """A centre and a scale for each dimension, which standardise features.

    They are taken from the training items and then used on any others.
    """

    centre: Tensor
    scale: Tensor

    @classmethod
    def of(cls, seen: Tensor) -> "Moments":
        """Mean and standard deviation.

        A dimension that never varies is only shifted: it becomes 0 and stays finite.
        """
        varies = seen.amin(0) < seen.amax(0)
        centre = torch.where(varies, seen.mean(0), seen[0])
        return cls(centre, torch.where(varies, seen.std(0), 1.0))

    def __call__(self, values: Tensor) -> Tensor:
        """
        >>> moments = Moments.of(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
        >>> moments(torch.tensor([[1.0, 5.0], [4.0, 6.0]]))
        tensor([[-0.7071,  0.0000],
                [ 1.4142,  1.0000]])
        """
        return (values - self.centre) / self.scale
