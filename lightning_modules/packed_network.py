"""Many fully connected networks of one shape as one: their weights are stacked, a layer of all of them is one or few matmuls.

Members that see the same batch form a span; their first layer is a single large matmul. Weight gradients are written straight into stacked
buffers, because at such sizes the step is bound by memory traffic and a second pass over the weights would show.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lightning_modules.networks import Network


class Span(NamedTuple):
    """The members from `start` to `stop` see the same inputs."""

    start: int
    stop: int


class StackedLinear:
    """The linear layers at one depth of M networks: weight [M, out, in], bias [M, out], and a gradient buffer for each."""

    def __init__(self, layers: Sequence[nn.Linear]):
        self.weight = torch.stack([layer.weight.detach() for layer in layers]).requires_grad_()
        self.bias = torch.stack([layer.bias.detach() for layer in layers]).requires_grad_()
        self.weight.grad, self.bias.grad = torch.zeros_like(self.weight), torch.zeros_like(self.bias)

    def keep(self, members: Tensor) -> None:
        for name in ("weight", "bias"):
            kept = getattr(self, name).detach()[members].requires_grad_()
            kept.grad = torch.zeros_like(kept)
            setattr(self, name, kept)

    def part(self, span: Span) -> "StackedLinear":
        view = copy(self)
        view.weight, view.bias = self.weight[span.start : span.stop], self.bias[span.start : span.stop]
        return view


class _SharedInputs(torch.autograd.Function):
    """First layer: inputs [B, in] of each span to outputs [M, out, B]."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, layer: StackedLinear, spans: Sequence[Span], inputs: Sequence[Tensor]) -> Tensor:
        ctx.layer, ctx.spans, ctx.inputs = layer, spans, inputs
        members, size_out, size_in = weight.shape
        outputs = weight.new_empty(members, size_out, len(inputs[0]))
        for span, seen in zip(spans, inputs, strict=True):
            wide = weight[span.start : span.stop].view(-1, size_in)
            torch.mm(wide, seen.t(), out=outputs[span.start : span.stop].view(len(wide), -1))
        return outputs.add_(bias[..., None])

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor):
        gradient = upstream[0].contiguous()
        layer: StackedLinear = ctx.layer
        assert layer.weight.grad is not None
        assert layer.bias.grad is not None
        size_in = layer.weight.shape[2]
        for span, seen in zip(ctx.spans, ctx.inputs, strict=True):
            flat = gradient[span.start : span.stop].view(-1, len(seen))
            torch.mm(flat, seen, out=layer.weight.grad[span.start : span.stop].view(-1, size_in))
        torch.sum(gradient, 2, out=layer.bias.grad)
        return None, None, None, None, None


class _OwnInputs(torch.autograd.Function):
    """Later layers: inputs [M, in, B] to outputs [M, out, B]."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, layer: StackedLinear) -> Tensor:
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


class PackedNetwork:
    """M networks of one shape, built from M ordinary ones and taken apart into ordinary state dicts again.

    >>> from lightning_modules.networks import SimpleFFN
    >>> members = [SimpleFFN((4,), 3), SimpleFFN((4,), 3)]
    >>> packed, inputs = PackedNetwork(members), torch.ones(5, 4)
    >>> torch.allclose(packed([inputs], [Span(0, 2)])[1], members[1](inputs), atol=1e-6)
    True
    """

    def __init__(self, members: Sequence[Network]):
        template = members[0]
        self.names = [name for name, module in template.named_modules() if isinstance(module, nn.Linear)]
        self.layers = [StackedLinear([member.get_submodule(name) for member in members]) for name in self.names]  # pyright: ignore
        self._between = _modules_after_each_linear(template)

    def __call__(self, inputs: Sequence[Tensor], spans: Sequence[Span], dropout_seeds: Sequence[int] | None = None) -> Tensor:
        """Logits [M, B, K] from the inputs of each span, [B, ...]; in training, `dropout_seeds` has one seed for each span."""
        first = self.layers[0]
        flat = [seen.reshape(len(seen), -1) for seen in inputs]
        masks = self._dropout_masks(len(flat[0]), spans, dropout_seeds) if dropout_seeds is not None else None
        hidden: Tensor = _SharedInputs.apply(first.weight, first.bias, first, spans, flat)  # pyright: ignore
        for layer, modules in zip(self.layers[1:], self._between, strict=True):
            for module in modules:
                if not isinstance(module, nn.Dropout):
                    hidden = module(hidden)
                elif masks is not None and module.p:
                    hidden = hidden * next(masks)
            hidden = _OwnInputs.apply(hidden, layer.weight, layer.bias, layer)  # pyright: ignore
        return hidden.transpose(1, 2)

    def _dropout_masks(self, items: int, spans: Sequence[Span], seeds: Sequence[int]) -> Iterator[Tensor]:
        """For each dropout in turn, the masks [M, width, B] that each member would draw alone: members of a span draw the same."""
        drawn = []
        for span, seed in zip(spans, seeds, strict=True):
            torch.default_generator.manual_seed(seed)
            masks = []
            for layer, modules in zip(self.layers, self._between, strict=False):
                for module in modules:
                    if isinstance(module, nn.Dropout) and module.p:
                        mask = torch.empty(items, layer.weight.shape[1]).bernoulli_(1 - module.p).div_(1 - module.p)
                        masks.append(mask.t().expand(span.stop - span.start, -1, -1))
            drawn.append(masks)
        return (torch.cat(parts) for parts in zip(*drawn, strict=True))

    def part(self, span: Span) -> "PackedNetwork":
        """A view of some members, for evaluation."""
        view = copy(self)
        view.layers = [layer.part(span) for layer in self.layers]
        return view

    def keep(self, members: Tensor) -> None:
        """Go on with these members alone."""
        for layer in self.layers:
            layer.keep(members)

    def tensors(self) -> dict[str, Tensor]:
        """The stacked weights by the names that they have in an ordinary network."""
        pairs = zip(self.names, self.layers, strict=True)
        return {f"{name}.{kind}": getattr(layer, kind) for name, layer in pairs for kind in ("weight", "bias")}


def can_be_packed(network: Network) -> bool:
    """Whether a network is a plain chain of linear layers with activations and dropout between them."""
    kinds = (nn.Linear, nn.ReLU, nn.GELU, nn.Dropout, nn.Flatten, nn.Sequential, Network)
    return all(isinstance(module, kinds) for module in network.modules())


def _modules_after_each_linear(template: Network) -> list[list[nn.Module]]:
    """The activations and dropouts between one linear layer and the next, in order."""
    between: list[list[nn.Module]] = []
    for module in template.modules():
        if isinstance(module, nn.Linear):
            between.append([])
        elif isinstance(module, nn.ReLU | nn.GELU | nn.Dropout):
            between[-1].append(module)
    return between[:-1]
