"""What image models share: bytes in, pooled features out.

Images are resized and normalised as the model was trained.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.errors import InputError
from datamodules.embedders.embedder import Embedder, Inputs

# images per pass: on a CPU more are slower, because their activations fall out of the cache
AT_ONCE = {"cpu": 16, "cuda": 64}


class ImageEmbedder(Embedder):
    """Resizes whole images (bicubic, no crop), so that objects at their edges stay in sight."""

    @property
    @abstractmethod
    def side(self) -> int:
        """Of the square that the model sees, in pixels."""

    @property
    @abstractmethod
    def mean(self) -> Sequence[float]:
        """Of each channel, on the scale from 0 to 1."""

    @property
    @abstractmethod
    def std(self) -> Sequence[float]:
        """Of each channel, on the same scale."""

    @property
    def preprocessing(self) -> str:
        """A part of the identity: another size or other statistics give other embeddings."""
        return (
            f"RGB bytes, bicubic to {self.side} x {self.side}, mean {tuple(self.mean)}, std "
            f"{tuple(self.std)}"
        )

    @cached_property
    @abstractmethod
    def network(self) -> nn.Module:
        """The model with its weights, in eval mode."""

    @abstractmethod
    def features(self, images: Tensor) -> Tensor:
        """Pooled features [B, D] of prepared images."""

    def look_over(self, inputs: Inputs) -> list[str]:
        """Raises an `InputError` for anything but RGB images as bytes; there is nothing to say."""
        if not isinstance(inputs, Tensor):
            raise InputError(
                f"{self.name} embeds images, but these inputs are texts; choose an embedder of "
                "texts."
            )
        if inputs.dtype != torch.uint8 or inputs.ndim != 4 or inputs.shape[1] != 3:
            raise InputError(
                f"{self.name} takes RGB images as bytes [N, 3, H, W]; these are {inputs.dtype} "
                f"{list(inputs.shape)}."
            )
        return []

    @torch.no_grad()
    def embed(self, batch: Inputs) -> Tensor:
        """A few images at a time, on the GPU if there is one."""
        assert isinstance(batch, Tensor)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.network.to(device=device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        parts = [
            self.features(prepared(images.to(device), self.side, self.mean, self.std)).float().cpu()
            for images in batch.split(AT_ONCE[device])
        ]
        return torch.cat(parts)


def prepared(images: Tensor, side: int, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Byte images as a model sees them: float, square, normalised by channel.

    >>> white = torch.full((1, 3, 2, 2), 255, dtype=torch.uint8)
    >>> prepared(white, 2, mean=(0.5,) * 3, std=(0.5,) * 3).unique()
    tensor([1.])
    """
    values = images.float()
    if images.shape[-2:] != (side, side):
        # bicubic overshoots at edges
        values = F.interpolate(values, (side, side), mode="bicubic", antialias=True).clamp(0, 255)
    statistics = (torch.tensor(numbers, device=images.device) for numbers in (mean, std))
    centre, factor = (numbers.reshape(1, -1, 1, 1) for numbers in statistics)
    return values.div(255).sub(centre).div(factor).contiguous(memory_format=torch.channels_last)
