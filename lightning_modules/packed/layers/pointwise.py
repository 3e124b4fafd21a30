"""What lies between the layers of a pack and has no weights: activations, the way from images to
rows, and dropout by masks that are drawn as each member would draw them alone.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


class ReLU:
    """max(0, x)."""

    def forward(self, hidden: Tensor, training: bool) -> Tensor:
        """Of all values."""
        self.output = torch.relu(hidden)
        return self.output

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        """Through positive values alone."""
        return torch.ops.aten.threshold_backward(gradient, self.output, 0)


class GELU:
    """As `nn.GELU` has it, exact or by tanh."""

    def __init__(self, approximate: str):
        self.approximate = approximate

    def forward(self, hidden: Tensor, training: bool) -> Tensor:
        """Of all values."""
        self.seen = hidden
        return F.gelu(hidden, approximate=self.approximate)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        """By its derivative."""
        return torch.ops.aten.gelu_backward(gradient, self.seen, approximate=self.approximate)


class Flatten:
    """From images [M, channels, height, width, B] to rows [M, B, channels * height * width]."""

    def forward(self, hidden: Tensor, training: bool) -> Tensor:
        """No copy."""
        self.shape = hidden.shape
        return hidden.flatten(1, -2).transpose(1, 2)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        """Back to images."""
        return gradient.transpose(1, 2).reshape(self.shape)


class Dropout:
    """Multiplies by `mask` [B, width], which all members of a span share; in evaluation not at
    all.
    """

    def __init__(self, chance: float, width: int):
        self.chance, self.width = chance, width
        self.mask: Tensor | None = None

    def forward(self, hidden: Tensor, training: bool) -> Tensor:
        """Drop values of a training step."""
        if not training:
            return hidden
        assert self.mask is not None
        return hidden * self.mask

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        """Drop their gradients."""
        assert self.mask is not None
        return gradient * self.mask


def dropout_masks(dropouts: Sequence[Dropout], items: int, seed: int, like: Tensor) -> list[Tensor]:
    """For each dropout in turn, the mask [items, width] that torch draws after `manual_seed(seed)`,
    in the precision and on the device of `like`.
    """
    draw = torch.Generator("cpu" if like.is_meta else like.device).manual_seed(seed)
    return [
        like.new_empty(items, dropout.width)
        .bernoulli_(1 - dropout.chance, generator=draw)
        .div_(1 - dropout.chance)
        for dropout in dropouts
    ]
