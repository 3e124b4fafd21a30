"""The layers at one depth of many networks as one: their weights are stacked, and what they compute
is one or few matmuls.

Weight gradients are written straight into stacked buffers, because at such sizes the step is bound
by memory traffic and a second pass over the weights would show. A backward pass overwrites these
buffers: it needs no zeroing, it does not add up, and it cannot be differentiated again.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Span(NamedTuple):
    """The members from `start` to `stop` see the same inputs."""

    start: int
    stop: int


class StackedLinear:
    """The linear layers at one depth of M networks: weight [M, out, in], bias [M, out], and a
    gradient buffer for each.
    """

    def __init__(self, layers: Sequence[nn.Linear] | Sequence[nn.Conv2d]):
        self.weight, self.bias = (
            with_buffer(torch.stack([getattr(layer, kind).detach() for layer in layers]))
            for kind in ("weight", "bias")
        )

    def keep(self, members: Tensor) -> None:
        """Go on with these members alone."""
        self.weight, self.bias = (
            with_buffer(tensor.detach()[members]) for tensor in (self.weight, self.bias)
        )

    def part(self, span: Span) -> "StackedLinear":
        """Some members alone, in the same memory: what is trained here is trained there."""
        view = copy(self)
        view.weight, view.bias = (slice_of(tensor, span) for tensor in (self.weight, self.bias))
        return view

    def first(self, spans: Sequence[Span], inputs: Sequence[Tensor]) -> Tensor:
        """As the first layer: inputs [B, ...] of each span to outputs [M, out, B]."""
        flat = [seen.reshape(len(seen), -1) for seen in inputs]
        return SharedInputs.apply(self.weight, self.bias, self, spans, flat)  # pyright: ignore

    def later(self, hidden: Tensor) -> Tensor:
        """As a later one: each member's own inputs [M, ..., B] to outputs [M, out, B]."""
        return _OwnInputs.apply(hidden.flatten(1, -2), self.weight, self.bias, self)  # pyright: ignore


def with_buffer(tensor: Tensor) -> Tensor:
    """A tensor to be trained, and the buffer that its gradient is written to."""
    tensor = tensor.contiguous().requires_grad_()
    tensor.grad = torch.zeros_like(tensor)
    return tensor


def slice_of(tensor: Tensor, span: Span) -> Tensor:
    """Some members of a tensor and of its buffer, in the same memory."""
    assert tensor.grad is not None
    part = tensor.detach()[span.start : span.stop].requires_grad_()
    part.grad = tensor.grad[span.start : span.stop]
    return part


class SharedInputs(torch.autograd.Function):
    """Rows [B, in] of each span to outputs [M, out, B]: of all members that see the same rows, one
    matmul.
    """

    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        bias: Tensor,
        layer: StackedLinear,
        spans: Sequence[Span],
        inputs: Sequence[Tensor],
    ) -> Tensor:
        """One matmul for each span."""
        ctx.layer, ctx.spans, ctx.inputs = layer, spans, inputs
        outputs = weight.new_empty(*weight.shape[:2], len(inputs[0]))
        for span, seen in zip(spans, inputs, strict=True):
            wide = weight[span.start : span.stop].flatten(0, 1).flatten(1)
            torch.mm(wide, seen.t(), out=outputs[span.start : span.stop].view(len(wide), -1))
        return outputs.add_(bias[..., None])

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor):
        """Straight into the layer's buffers."""
        gradient = upstream[0].contiguous()
        layer: StackedLinear = ctx.layer
        assert layer.weight.grad is not None
        assert layer.bias.grad is not None
        for span, seen in zip(ctx.spans, ctx.inputs, strict=True):
            flat = gradient[span.start : span.stop].view(-1, len(seen))
            torch.mm(flat, seen, out=layer.weight.grad[span.start : span.stop].view(len(flat), -1))
        torch.sum(gradient, 2, out=layer.bias.grad)
        return None, None, None, None, None


class _OwnInputs(torch.autograd.Function):
    """Inputs [M, in, B] to outputs [M, out, B]."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, layer: StackedLinear
    ) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(inputs)
        return torch.baddbmm(bias[..., None], weight, inputs)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor):
        (gradient,) = upstream
        (inputs,) = ctx.saved_tensors
        layer: StackedLinear = ctx.layer
        assert layer.weight.grad is not None
        assert layer.bias.grad is not None
        torch.bmm(gradient, inputs.transpose(1, 2), out=layer.weight.grad)
        torch.sum(gradient, 2, out=layer.bias.grad)
        return torch.bmm(layer.weight.transpose(1, 2), gradient), None, None, None
