"""Convolutions and pooling of many networks as one, on images whose last dimension is the batch:
[M, channels, height, width, B].

In that order what a window sees as it is moved along an image is, row by row, one run of memory: to
unfold an image costs little more than to copy it, a convolution is a matmul of what was unfolded,
and pooling compares long rows. The work of torch's own convolutions and pooling on so few channels
is mostly rearrangement. What it brings for a whole pack of LeNets is measured by
benchmarks/packed.py.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lightning_modules.packed.stacked_linear import SharedInputs, Span, StackedLinear


class StackedConvolution(StackedLinear):
    """The convolutions at one depth of M networks: weight [M, out, in, kernel, kernel], bias [M,
    out], and a gradient buffer for each.
    """

    def __init__(self, layers: Sequence[nn.Conv2d]):
        super().__init__(layers)
        self.padding, self.kernel = int(layers[0].padding[0]), layers[0].kernel_size[0]

    def first(self, spans: Sequence[Span], inputs: Sequence[Tensor]) -> Tensor:
        """Images [B, channels, height, width] of each span; members of a span share what is
        unfolded.
        """
        images = [self._padded(seen.permute(1, 2, 3, 0)) for seen in inputs]
        outputs = SharedInputs.apply(
            self.weight,
            self.bias,
            self,
            spans,
            [unfolded(image, self.kernel).t() for image in images],
        )
        return outputs.unflatten(2, self._size(images[0]))  # pyright: ignore

    def later(self, hidden: Tensor) -> Tensor:
        """Images of each member's own, [M, channels, height, width, B]."""
        return _OwnImages.apply(self._padded(hidden), self.weight, self.bias, self)  # pyright: ignore

    def _padded(self, images: Tensor) -> Tensor:
        return (F.pad(images, (0, 0, *[self.padding] * 4)) if self.padding else images).contiguous()

    def _size(self, image: Tensor) -> tuple[int, int, int]:
        """Height, width and batch of what comes out."""
        height, width, items = image.shape[-3:]
        return height - self.kernel + 1, width - self.kernel + 1, items


class _OwnImages(torch.autograd.Function):
    """Images [M, in, H, W, B], each member's own, to [M, out, h, w, B]: one matmul for each row of
    the window, over all places at once.

    Members take turns with one buffer, so that what is unfolded stays in the processor's cache.
    """

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, layer: StackedConvolution
    ) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(images)
        outputs = images.new_empty(*bias.shape, *layer._size(images))
        # [M, row of the window, out, in * column of the window]
        filters = weight.permute(0, 3, 1, 2, 4).flatten(3).contiguous()
        strips = Strips(images, layer.kernel)
        for own, image, rows, offset in zip(outputs.flatten(2), images, filters, bias, strict=True):
            own.copy_(offset[:, None].expand_as(own))
            for row, seen in zip(rows, strips.of(image), strict=True):
                own.addmm_(row, seen)
        return outputs

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor):
        gradient = upstream[0].contiguous().flatten(2)
        (images,) = ctx.saved_tensors
        layer: StackedConvolution = ctx.layer
        assert layer.weight.grad is not None
        assert layer.bias.grad is not None
        # [M, row of the window, in * column of the window, out]
        filters = layer.weight.permute(0, 3, 2, 4, 1).flatten(2, 3).contiguous()
        of_filters, of_images, strips = (
            torch.empty_like(filters),
            torch.zeros_like(images),
            Strips(images, layer.kernel),
        )
        for own, image, rows, of_rows, into in zip(
            gradient, images, filters, of_filters, of_images, strict=True
        ):
            for seen, of_row in zip(strips.of(image), of_rows, strict=True):
                torch.mm(seen, own.t(), out=of_row)
            for seen, row in zip(strips.of_zeros(), rows, strict=True):
                seen.addmm_(row, own)
            strips.add_to(into)
        layer.weight.grad.copy_(of_filters.unflatten(2, (-1, layer.kernel)).permute(0, 4, 2, 1, 3))
        torch.sum(gradient, 2, out=layer.bias.grad)
        return of_images, None, None, None


class Strips:
    """What a row of a square window sees as it is moved over images of one size, in a buffer that
    they use in turn.

    The buffer [in * kernel, H * w * B] holds each image `kernel` times, moved by one column each
    time. What the first row of the window sees from everywhere is its first h * w * B columns; the
    next row sees those that begin one row of the image later.
    """

    def __init__(self, images: Tensor, kernel: int):
        _, channels, height, width, items = images.shape
        self.kernel, self.width = kernel, width - kernel + 1
        self.buffer = images.new_empty(channels, kernel, height, self.width, items)
        step = self.width * items
        places = (height - kernel + 1) * step
        flat = self.buffer.flatten(0, 1).flatten(1)
        self.rows = [flat[:, row * step : row * step + places] for row in range(kernel)]

    def of(self, image: Tensor) -> list[Tensor]:
        """For each row of the window, what it sees of this image: [in * kernel, places * B]."""
        self.buffer.copy_(image.unfold(2, self.kernel, 1).permute(0, 4, 1, 2, 3))
        return self.rows

    def of_zeros(self) -> list[Tensor]:
        """The same of nothing, to be added to."""
        self.buffer.zero_()
        return self.rows

    def add_to(self, image: Tensor) -> None:
        """Add all that is in the buffer to the places that `of` would have taken it from."""
        for column in range(self.kernel):
            image[:, :, column : column + self.width] += self.buffer[:, column]


def unfolded(image: Tensor, kernel: int) -> Tensor:
    """What a square window sees from everywhere, [channels * kernel * kernel, places * B], of an
    image [channels, height, width, B].

    >>> unfolded(torch.arange(6.0).view(1, 2, 3, 1), 2)
    tensor([[0., 1.],
            [1., 2.],
            [3., 4.],
            [4., 5.]])
    """
    # [channels, h, w, B, kernel, kernel], no copy
    windows = image.unfold(1, kernel, 1).unfold(2, kernel, 1)
    return windows.permute(0, 4, 5, 1, 2, 3).reshape(len(image) * kernel * kernel, -1)


def pooled(images: Tensor, ceil_mode: bool) -> Tensor:
    """The largest of each 2 x 2 values of images [..., height, width, B], as `nn.MaxPool2d(2)` has
    it.

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
    """First the larger of two rows, then the larger of two columns.

    Of equal values one alone is given the gradient; of two on the rising diagonal that is the lower
    one, where torch takes the upper.
    """

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
        return _shared_out(
            _shared_out(upstream[0], from_left, -2).flatten(-3, -2), from_upper, -3
        ).flatten(-4, -3)


def _at_least(one: Tensor, other: Tensor) -> Tensor:
    """1 where it is, else 0: as numbers, because torch multiplies those several times faster than
    truth values.
    """
    return torch.ge(one, other, out=torch.empty_like(one, memory_format=torch.contiguous_format))


def _shared_out(gradient: Tensor, to_first: Tensor, dim: int) -> Tensor:
    """The gradient of two, stacked at `dim`: that of the first where `to_first` is 1, and of the
    second elsewhere.
    """
    both = gradient.new_empty(*gradient.shape[: dim + 1], 2, *gradient.shape[dim + 1 :])
    first, second = both.unbind(dim)
    torch.mul(gradient, to_first, out=first)
    torch.sub(gradient, first, out=second)
    return both
