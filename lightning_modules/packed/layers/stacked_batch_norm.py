"""The BatchNorm layers at one depth of many networks as one: to torch they are one layer of M * C
channels.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lightning_modules.packed.layers.stacked_linear import Span, StackedLayer

STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class StackedBatchNorm(StackedLayer):
    """Weight and bias [M, C], and the running statistics of each member, [M, C], with the number of
    batches that they come from, [M].
    """

    def __init__(self, layers: Sequence[nn.BatchNorm1d] | Sequence[nn.BatchNorm2d]):
        super().__init__(layers)
        self.running_mean, self.running_var, self.num_batches_tracked = (
            torch.stack([getattr(layer, kind) for layer in layers]) for kind in STATISTICS
        )
        self.momentum, self.eps = layers[0].momentum or 0.0, layers[0].eps

    def keep(self, members: Tensor) -> None:
        """Go on with these members alone."""
        super().keep(members)
        for kind in STATISTICS:
            setattr(self, kind, getattr(self, kind)[members])

    def part(self, span: Span) -> "StackedBatchNorm":
        """Some members alone, in the same memory."""
        view = super().part(span)
        for kind in STATISTICS:
            setattr(view, kind, getattr(self, kind)[slice(*span)])
        return view

    def forward(self, hidden: Tensor, training: bool) -> Tensor:
        """[M, B, C] or [M, C, height, width, B] normalised, by what each channel holds in training
        and by the running statistics in evaluation; one value alone by these, too (see
        `networks/batch_norm.py`).
        """
        self.seen = self._channels(hidden)
        self.by_batch = training and self.seen.numel() > self.weight.numel()
        mean, variance = self.running_mean.view(-1), self.running_var.view(-1)
        if self.by_batch:
            mean, variance = self._statistics()
        normalised, *_ = torch.native_batch_norm(
            self.seen, self.weight.view(-1), self.bias.view(-1), mean, variance, False, 0, self.eps
        )
        self.saved = mean, (variance + self.eps).rsqrt()
        return self._members(normalised, hidden)

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        """The same, backward."""
        assert self.weight.grad is not None
        assert self.bias.grad is not None
        of_hidden, of_weight, of_bias = torch.ops.aten.native_batch_norm_backward(
            self._channels(gradient),
            self.seen,
            self.weight.view(-1),
            self.running_mean.view(-1),
            self.running_var.view(-1),
            *self.saved,
            self.by_batch,
            self.eps,
            [True] * 3,
        )
        self.weight.grad.view(-1).copy_(of_weight)
        self.bias.grad.view(-1).copy_(of_bias)
        return self._members(of_hidden, gradient)

    def _statistics(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of each channel, which the running ones follow.

        torch's own loop over long rows takes four times as long as these passes.
        """
        dims = [dim for dim in range(self.seen.ndim) if dim != 1]
        mean = self.seen.mean(dims, keepdim=True)
        variance = (self.seen - mean).square_().mean(dims)
        values = self.seen.numel() // self.weight.numel()
        unbiased = variance * (values / (values - 1))
        self.running_mean.lerp_(mean.view_as(self.running_mean), self.momentum)
        self.running_var.lerp_(unbiased.view_as(self.running_var), self.momentum)
        self.num_batches_tracked += 1
        return mean.view(-1), variance

    def _channels(self, hidden: Tensor) -> Tensor:
        """All members' channels as those of one layer: [B, M * C], or [1, M * C, places * B]."""
        if hidden.ndim == 3:
            return hidden.transpose(0, 1).flatten(1)
        return hidden.reshape(1, self.weight.numel(), -1)

    def _members(self, channels: Tensor, like: Tensor) -> Tensor:
        if like.ndim == 3:
            return channels.unflatten(1, self.weight.shape).transpose(0, 1)
        return channels.view(like.shape)
