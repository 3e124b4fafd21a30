"""Convolutions and pooling of many networks as one, on images whose last dimension is the batch:
[M, channels, height, width, B].

In that order what a window sees as it is moved along an image is, row by row, one run of memory: to
unfold an image costs little more than to copy it, a convolution is a matmul of what was unfolded,
and pooling compares long rows. The work of torch's own convolutions and pooling on so few channels
is mostly rearrangement. What it brings for a whole pack of LeNets is measured by
benchmarks/packed.py.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lightning_modules.packed.layers.stacked_linear import StackedLayer


class StackedConvolution(StackedLayer):
    """Weight [M, out, in, kernel, kernel] and bias [M, out]; images [M, in, H, W, B] to
    [M, out, h, w, B].
    """

    def __init__(self, layers: Sequence[nn.Conv2d]):
        super().__init__(layers)
        self.padding, self.kernel = int(layers[0].padding[0]), layers[0].kernel_size[0]

    def forward(self, hidden: Tensor, training: bool) -> Tensor:
        """Each member's own images, or [in, H, W, B] that all share: what is unfolded of these is
        one large matmul for all members.
        """
        self.seen = self._padded(hidden)
        size = self._size(self.seen)
        if self.seen.ndim == 4:
            self.columns = unfolded(self.seen, self.kernel)
            filters = torch.cat((self.weight.flatten(2), self.bias[..., None]), 2)
            return torch.mm(filters.flatten(0, 1), self.columns).view(*self.bias.shape, *size)
        return self._own(self.seen, size)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        """From the gradient of the outputs to that of the images, where one layer more wants it."""
        assert self.weight.grad is not None
        assert self.bias.grad is not None
        flat = gradient.contiguous().flatten(2)
        if self.seen.ndim == 4:
            # in this order, because the other way round takes 1.4 times as long
            of_filters = torch.mm(self.columns, flat.flatten(0, 1).t()).t()
            self.weight.grad.copy_(of_filters[:, :-1].reshape(self.weight.shape))
            self.bias.grad.copy_(of_filters[:, -1].view(self.bias.shape))
            return gradient
        torch.sum(flat, 2, out=self.bias.grad)
        of_images = self._of_own(flat)
        margin = self.padding
        return F.pad(of_images, (0, 0, *[-margin] * 4)) if margin else of_images

    def _padded(self, images: Tensor) -> Tensor:
        return (F.pad(images, (0, 0, *[self.padding] * 4)) if self.padding else images).contiguous()

    def _size(self, image: Tensor) -> tuple[int, int, int]:
        """Height, width and batch of what comes out."""
        height, width, items = image.shape[-3:]
        return height - self.kernel + 1, width - self.kernel + 1, items

    def _own(self, images: Tensor, size: tuple[int, int, int]) -> Tensor:
        """One matmul for each row of the window, over all places at once. Members take turns with
        one buffer, so that what is unfolded stays in the processor's cache.
        """
        outputs = images.new_empty(*self.bias.shape, *size)
        # [M, row of the window, out, in * column of the window]
        filters = self.weight.permute(0, 3, 1, 2, 4).flatten(3).contiguous()
        strips = Strips(images, self.kernel)
        for own, image, rows, offset in zip(
            outputs.flatten(2), images, filters, self.bias, strict=True
        ):
            own.copy_(offset[:, None].expand_as(own))
            for row, seen in zip(rows, strips.of(image), strict=True):
                own.addmm_(row, seen)
        return outputs

    def _of_own(self, gradient: Tensor) -> Tensor:
        """The same, backward, from [M, out, places * B]."""
        assert self.weight.grad is not None
        images = self.seen
        # [M, row of the window, in * column of the window, out]
        filters = self.weight.permute(0, 3, 2, 4, 1).flatten(2, 3).contiguous()
        of_filters, of_images, strips = (
            torch.empty_like(filters),
            torch.zeros_like(images),
            Strips(images, self.kernel),
        )
        for own, image, rows, of_rows, into in zip(
            gradient, images, filters, of_filters, of_images, strict=True
        ):
            for seen, of_row in zip(strips.of(image), of_rows, strict=True):
                torch.mm(seen, own.t(), out=of_row)
            for seen, row in zip(strips.of_zeros(), rows, strict=True):
                seen.addmm_(row, own)
            strips.add_to(into)
        self.weight.grad.copy_(of_filters.unflatten(2, (-1, self.kernel)).permute(0, 4, 2, 1, 3))
        return of_images


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
    """What a square window sees from everywhere, and a last row of ones that a bias is multiplied
    with: [channels * kernel * kernel + 1, places * B], of an image [channels, height, width, B].

    >>> unfolded(torch.arange(6.0).view(1, 2, 3, 1), 2)
    tensor([[0., 1.],
            [1., 2.],
            [3., 4.],
            [4., 5.],
            [1., 1.]])
    """
    # [channels, kernel, kernel, h, w, B], no copy
    windows = image.unfold(1, kernel, 1).unfold(2, kernel, 1).permute(0, 4, 5, 1, 2, 3)
    columns = image.new_ones(windows[:, :, :, 0, 0, 0].numel() + 1, windows[0, 0, 0].numel())
    columns[:-1].view(windows.shape).copy_(windows)
    return columns


class MaxPool:
    """The largest of each 2 x 2 values of images [..., height, width, B], as `nn.MaxPool2d(2)` has
    it: first the larger of two rows, then the larger of two columns.

    Of equal values one alone is given the gradient; of two on the rising diagonal that is the lower
    one, where torch takes the upper.

    >>> images = torch.tensor([[1.0, 5.0, 2.0], [3.0, 4.0, 8.0]])[..., None]
    >>> MaxPool(ceil_mode=True).forward(images, training=False)[..., 0]
    tensor([[5., 8.]])
    """

    def __init__(self, ceil_mode: bool):
        self.ceil_mode = ceil_mode

    def forward(self, hidden: Tensor, training: bool) -> Tensor:
        """An odd last row or column is compared with nothing, or left out."""
        rows, columns = hidden.shape[-3] % 2, hidden.shape[-2] % 2
        sign = 1 if self.ceil_mode else -1
        self.margin = (0, 0, 0, sign * columns, 0, sign * rows)
        if rows or columns:
            hidden = F.pad(hidden, self.margin, value=-torch.inf)
        upper, lower = hidden.contiguous().unflatten(-3, (-1, 2)).unbind(-3)
        taller = torch.maximum(upper, lower)
        left, right = taller.unflatten(-2, (-1, 2)).unbind(-2)
        if training:
            self.from_upper, self.from_left = _at_least(upper, lower), _at_least(left, right)
        return torch.maximum(left, right)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        """To the largest of each four."""
        of_taller = _shared_out(gradient, self.from_left, -2).flatten(-3, -2)
        of_images = _shared_out(of_taller, self.from_upper, -3).flatten(-4, -3)
        return F.pad(of_images, tuple(-m for m in self.margin)) if any(self.margin) else of_images


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
