"""The linear layers at one depth of many networks as one: their weights are stacked, and what they
compute is one batched matmul.

Stacked layers differentiate themselves: autograd's own work would be a third of so small a step.
`forward` keeps what `backward` needs, and `backward` overwrites the gradients of the weights.
"""

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Span(NamedTuple):
    """The members from `start` to `stop` see the same inputs."""

    start: int
    stop: int


class StackedLayer:
    """Weight and bias of M layers, each stacked and with a gradient buffer."""

    def __init__(self, layers: Sequence[nn.Module]):
        self.weight, self.bias = (
            _with_buffer(torch.stack([getattr(layer, kind).detach() for layer in layers]))
            for kind in ("weight", "bias")
        )

    def keep(self, members: Tensor) -> None:
        """Go on with these members alone."""
        self.weight, self.bias = (
            _with_buffer(tensor.detach()[members]) for tensor in (self.weight, self.bias)
        )

    def part(self, span: Span):
        """Some members alone, in the same memory: what is trained here is trained there."""
        view = copy(self)
        view.weight, view.bias = (_slice(tensor, span) for tensor in (self.weight, self.bias))
        return view


class StackedLinear(StackedLayer):
    """Weight [M, out, in] and bias [M, out]; inputs [M, B, in] to outputs [M, B, out]."""

    def forward(self, hidden: Tensor, training: bool) -> Tensor:
        """Each member's own inputs, or shared ones that are expanded to all members."""
        self.seen = hidden
        return torch.baddbmm(self.bias[:, None], hidden, self.weight.transpose(1, 2))

    def backward(self, gradient: Tensor, further: bool) -> Tensor:
        """From the gradient of the outputs to that of the inputs, where one layer more wants it."""
        assert self.weight.grad is not None
        assert self.bias.grad is not None
        torch.bmm(gradient.transpose(1, 2), self.seen, out=self.weight.grad)
        torch.sum(gradient, 1, out=self.bias.grad)
        return torch.bmm(gradient, self.weight) if further else gradient


def _with_buffer(tensor: Tensor) -> Tensor:
    tensor = tensor.contiguous().requires_grad_()
    tensor.grad = torch.zeros_like(tensor)
    return tensor


def _slice(tensor: Tensor, span: Span) -> Tensor:
    assert tensor.grad is not None
    part = tensor.detach()[span.start : span.stop].requires_grad_()
    part.grad = tensor.grad[span.start : span.stop]
    return part
