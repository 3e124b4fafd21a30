"""Convolutions and pooling of many networks as one, on images whose last dimension is the batch: [M, channels, height, width, B].

In that order a window that is moved over an image is, row by row, one run of memory: to unfold an image costs little more than to copy it, a convolution
is a matmul of what was unfolded, and pooling compares long rows. At the sizes of LeNet, on a CPU, that takes half the time of torch's own convolutions and
pooling, whose work on so few channels is mostly rearrangement.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lightning_modules.stacked_linear import SharedInputs, Span, StackedLinear


class StackedConvolution(StackedLinear):
    """The convolutions at one depth of M networks: weight [M, out, in, kernel, kernel], bias [M, out], and a gradient buffer for each."""

    def __init__(self, layers: Sequence[nn.Conv2d]):
        super().__init__(layers)
        self.padding, self.kernel = int(layers[0].padding[0]), layers[0].kernel_size[0]

    def first(self, spans: Sequence[Span], inputs: Sequence[Tensor]) -> Tensor:
        """Images [B, channels, height, width] of each span; members of a span share what is unfolded."""
        images = [self._padded(seen.permute(1, 2, 3, 0)) for seen in inputs]
        outputs = SharedInputs.apply(self.weight, self.bias, self, spans, [unfolded(image, self.kernel).t() for image in images])
        return outputs.unflatten(2, self._size(images[0]))  # pyright: ignore

    def later(self, hidden: Tensor) -> Tensor:
        return _OwnImages.apply(self._padded(hidden), self.weight, self.bias, self)  # pyright: ignore

    def _padded(self, images: Tensor) -> Tensor:
        return F.pad(images, (0, 0, *[self.padding] * 4)).contiguous()

    def _size(self, image: Tensor) -> tuple[int, int, int]:
        """Height, width and batch of what comes out."""
        height, width, items = image.shape[-3:]
        return height - self.kernel + 1, width - self.kernel + 1, items


class _OwnImages(torch.autograd.Function):
    """Images [M, in, H, W, B], each member's own, to [M, out, h, w, B]. Members take turns, so that what is unfolded stays in the processor's cache."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, layer: StackedConvolution) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(images)
        outputs = images.new_empty(*bias.shape, *layer._size(images))
        for own, image, filters, offset in zip(outputs.flatten(2), images, weight.flatten(2), bias, strict=True):
            torch.addmm(offset[:, None], filters, unfolded(image, layer.kernel), out=own)
        return outputs

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor):
        gradient = upstream[0].contiguous().flatten(2)
        (images,) = ctx.saved_tensors
        layer: StackedConvolution = ctx.layer
        assert layer.weight.grad is not None
        assert layer.bias.grad is not None
        moved = torch.zeros_like(images)
        members = zip(gradient, images, layer.weight.flatten(2), layer.weight.grad.flatten(2), moved, strict=True)
        for own, image, filters, buffer, into in members:
            torch.mm(own, unfolded(image, layer.kernel).t(), out=buffer)
            fold_into(into, filters.t() @ own, layer.kernel)
        torch.sum(gradient, 2, out=layer.bias.grad)
        return moved, None, None, None


def unfolded(image: Tensor, kernel: int) -> Tensor:
    """What a square window sees from everywhere, [channels * kernel * kernel, places * B], of an image [channels, height, width, B].

    >>> unfolded(torch.arange(6.0).view(1, 2, 3, 1), 2)
    tensor([[0., 1.],
            [1., 2.],
            [3., 4.],
            [4., 5.]])
    """
    windows = image.unfold(1, kernel, 1).unfold(2, kernel, 1)  # [channels, h, w, B, kernel, kernel], no copy
    return windows.permute(0, 4, 5, 1, 2, 3).reshape(len(image) * kernel * kernel, -1)


def fold_into(image: Tensor, columns: Tensor, kernel: int) -> None:
    """Add columns to the places that `unfolded` would have taken them from."""
    channels, height, width, items = image.shape
    height, width = height - kernel + 1, width - kernel + 1
    windows = columns.view(channels, kernel, kernel, height, width, items)
    for row in range(kernel):
        for column in range(kernel):
            image[:, row : row + height, column : column + width] += windows[:, row, column]


def pooled(images: Tensor, ceil_mode: bool) -> Tensor:
    """The largest of each 2 x 2 values of images [..., height, width, B], as `nn.MaxPool2d(2)` has it.

    >>> pooled(torch.tensor([[1.0, 5.0, 2.0], [3.0, 4.0, 8.0]])[..., None], ceil_mode=True)[..., 0]
    tensor([[5., 8.]])
    """
    rows, columns = images.shape[-3] % 2, images.shape[-2] % 2
    if rows or columns:
        images = (
            F.pad(images, (0, 0, 0, columns, 0, rows), value=-torch.inf)
            if ceil_mode
            else images[..., : -rows or None, : -columns or None, :]
        )
    return _Pooled.apply(images.contiguous())  # pyright: ignore


class _Pooled(torch.autograd.Function):
    """First the larger of two rows, then the larger of two columns; of equal values the first, which alone is given the gradient."""

    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        upper, lower = images.unflatten(-3, (-1, 2)).unbind(-3)
        taller = torch.maximum(upper, lower)
        left, right = taller.unflatten(-2, (-1, 2)).unbind(-2)
        ctx.save_for_backward(_at_least(upper, lower), _at_least(left, right))
        return torch.maximum(left, right)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor):
        from_upper, from_left = ctx.saved_tensors
        return _shared_out(_shared_out(upstream[0], from_left, -2).flatten(-3, -2), from_upper, -3).flatten(-4, -3)


def _at_least(one: Tensor, other: Tensor) -> Tensor:
    """1 where it is, else 0: as numbers, because torch multiplies those several times faster than truth values."""
    return torch.ge(one, other, out=torch.empty_like(one, memory_format=torch.contiguous_format))


def _shared_out(gradient: Tensor, to_first: Tensor, dim: int) -> Tensor:
    """The gradient of two, stacked at `dim`: that of the first where `to_first` is 1, and of the second elsewhere."""
    both = gradient.new_empty(*gradient.shape[: dim + 1], 2, *gradient.shape[dim + 1 :])
    first, second = both.unbind(dim)
    torch.mul(gradient, to_first, out=first)
    torch.sub(gradient, first, out=second)
    return both
