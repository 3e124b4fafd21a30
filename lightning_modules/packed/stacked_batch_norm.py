"""The BatchNorm layers at one depth of many networks as one: to torch they are one layer of M * C
channels.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor, nn

from lightning_modules.packed.stacked_linear import Span, slice_of, with_buffer

STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class StackedBatchNorm:
    """Weight and bias [M, C] with a gradient buffer for each, and the running statistics of each
    member, [M, C], with the number of batches that they come from, [M].
    """

    def __init__(self, layers: Sequence[nn.BatchNorm1d] | Sequence[nn.BatchNorm2d]):
        self.weight, self.bias = (
            with_buffer(torch.stack([getattr(layer, kind).detach() for layer in layers]))
            for kind in ("weight", "bias")
        )
        self.running_mean, self.running_var, self.num_batches_tracked = (
            torch.stack([getattr(layer, kind) for layer in layers]) for kind in STATISTICS
        )
        self.momentum, self.eps = layers[0].momentum or 0.0, layers[0].eps

    def keep(self, members: Tensor) -> None:
        """Go on with these members alone."""
        self.weight, self.bias = (
            with_buffer(tensor.detach()[members]) for tensor in (self.weight, self.bias)
        )
        for kind in STATISTICS:
            setattr(self, kind, getattr(self, kind)[members])

    def part(self, span: Span) -> "StackedBatchNorm":
        """Some members alone, in the same memory."""
        view = copy(self)
        view.weight, view.bias = (slice_of(tensor, span) for tensor in (self.weight, self.bias))
        for kind in STATISTICS:
            setattr(view, kind, getattr(self, kind)[slice(*span)])
        return view

    def __call__(self, hidden: Tensor, training: bool) -> Tensor:
        """[M, C, ..., B] normalised, by what each channel holds in training and by the running
        statistics in evaluation; one value alone by these, too (see `networks/batch_norm.py`).
        """
        by_batch = training and hidden[0, 0].numel() > 1
        if by_batch:
            self.num_batches_tracked += 1
        return _Normalised.apply(hidden, self.weight, self.bias, self, by_batch)  # pyright: ignore


class _Normalised(torch.autograd.Function):
    """All members' channels as those of one layer, in one item."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        layer: StackedBatchNorm,
        by_batch: bool,
    ) -> Tensor:
        flat = hidden.contiguous().view(1, weight.numel(), -1)
        statistics = layer.running_mean.view(-1), layer.running_var.view(-1)
        normalised, *saved = torch.native_batch_norm(
            flat, weight.view(-1), bias.view(-1), *statistics, by_batch, layer.momentum, layer.eps
        )
        ctx.layer, ctx.by_batch = layer, by_batch
        ctx.save_for_backward(flat, *saved)
        return normalised.view(hidden.shape)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor):
        layer: StackedBatchNorm = ctx.layer
        flat, *saved = ctx.saved_tensors
        assert layer.weight.grad is not None
        assert layer.bias.grad is not None
        of_hidden, of_weight, of_bias = torch.ops.aten.native_batch_norm_backward(
            upstream[0].contiguous().view(flat.shape),
            flat,
            layer.weight.view(-1),
            layer.running_mean.view(-1),
            layer.running_var.view(-1),
            *saved,
            ctx.by_batch,
            layer.eps,
            [True] * 3,
        )
        layer.weight.grad.view(-1).copy_(of_weight)
        layer.bias.grad.view(-1).copy_(of_bias)
        return of_hidden.view(upstream[0].shape), None, None, None, None
