"""Many networks of one shape as one: a chain of stacked layers, with BatchNorm, activations,
pooling and dropout between them.

Members that see the same batch form a span, and what the first layer does with it is a single large
matmul.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import pairwise

import torch
from torch import Tensor, nn

from lightning_modules.networks import Network
from lightning_modules.packed.stacked_batch_norm import STATISTICS, StackedBatchNorm
from lightning_modules.packed.stacked_convolution import StackedConvolution, pooled
from lightning_modules.packed.stacked_linear import Span, StackedLinear

LAYERS = (nn.Linear, nn.Conv2d)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


class PackedNetwork:
    """M networks of one shape, built from M ordinary ones and taken apart into ordinary state dicts
    again.

    >>> from lightning_modules.networks import SimpleFFN
    >>> members = [SimpleFFN((4,), 3), SimpleFFN((4,), 3)]
    >>> packed, inputs = PackedNetwork(members), torch.ones(5, 4)
    >>> torch.allclose(packed([inputs], [Span(0, 2)])[1], members[1](inputs), atol=1e-6)
    True
    """

    def __init__(self, members: Sequence[Network]):
        template = members[0]
        self.names, self.norm_names = (
            [name for name, module in template.named_modules() if isinstance(module, kinds)]
            for kinds in (LAYERS, NORMS)
        )
        self.layers = [
            _stacked([member.get_submodule(name) for member in members]) for name in self.names
        ]
        self.norms = [
            StackedBatchNorm([member.get_submodule(name) for member in members])  # pyright: ignore
            for name in self.norm_names
        ]
        self._between = _modules_after_each_layer(template)

    @property
    def convolutional(self) -> bool:
        """Whether its activations are so large that only some members' fit into the processor's
        cache.
        """
        return any(isinstance(layer, StackedConvolution) for layer in self.layers)

    def __call__(
        self,
        inputs: Sequence[Tensor],
        spans: Sequence[Span],
        dropout_seeds: Sequence[int] | None = None,
    ) -> Tensor:
        """Logits [M, B, K] from the inputs of each span, [B, ...]; in training, `dropout_seeds` has
        one seed for each span.
        """
        masks = (
            self._dropout_masks(len(inputs[0]), spans, dropout_seeds)
            if dropout_seeds is not None
            else None
        )
        hidden, norms = self.layers[0].first(spans, inputs), iter(self.norms)
        for layer, modules in zip(self.layers[1:], self._between, strict=True):
            for module in modules:
                if isinstance(module, nn.MaxPool2d):
                    hidden = pooled(hidden, module.ceil_mode)
                elif isinstance(module, NORMS):
                    hidden = next(norms)(hidden, training=masks is not None)
                elif not isinstance(module, nn.Dropout):
                    hidden = module(hidden)
                elif masks is not None and module.p:
                    hidden = hidden * next(masks)
            hidden = layer.later(hidden)
        return hidden.transpose(1, 2)

    def _dropout_masks(
        self, items: int, spans: Sequence[Span], seeds: Sequence[int]
    ) -> Iterator[Tensor]:
        """For each dropout in turn, the masks [M, width, B] that each member would draw alone:
        members of a span draw the same.
        """
        drawn = []
        for span, seed in zip(spans, seeds, strict=True):
            torch.default_generator.manual_seed(seed)
            masks = []
            for layer, modules in zip(self.layers, self._between, strict=False):
                for module in modules:
                    if isinstance(module, nn.Dropout) and module.p:
                        mask = (
                            layer.weight.new_empty(items, layer.weight.shape[1])
                            .bernoulli_(1 - module.p)
                            .div_(1 - module.p)
                        )
                        masks.append(mask.t().expand(span.stop - span.start, -1, -1))
            drawn.append(masks)
        return (torch.cat(parts) for parts in zip(*drawn, strict=True))

    def part(self, span: Span) -> "PackedNetwork":
        """Some members alone, in the same memory."""
        view = copy(self)
        view.layers = [layer.part(span) for layer in self.layers]
        view.norms = [norm.part(span) for norm in self.norms]
        return view

    def keep(self, members: Tensor) -> None:
        """Go on with these members alone."""
        for layer in (*self.layers, *self.norms):
            layer.keep(members)

    def tensors(self) -> dict[str, Tensor]:
        """The stacked weights by the names that they have in an ordinary network."""
        names, layers = (*self.names, *self.norm_names), (*self.layers, *self.norms)
        return {
            f"{name}.{kind}": getattr(layer, kind)
            for name, layer in zip(names, layers, strict=True)
            for kind in ("weight", "bias")
        }

    def buffers(self) -> dict[str, Tensor]:
        """What the members keep beside their weights, stacked: BatchNorm's running statistics."""
        return {
            f"{name}.{kind}": getattr(norm, kind)
            for name, norm in zip(self.norm_names, self.norms, strict=True)
            for kind in STATISTICS
        }


def can_be_packed(network: Network) -> bool:
    """Whether a network is a plain chain of linear layers, or of convolutions and then linear
    layers, that its packed form can compute.
    """
    kinds = (
        *LAYERS,
        *NORMS,
        nn.MaxPool2d,
        nn.ReLU,
        nn.GELU,
        nn.Dropout,
        nn.Flatten,
        nn.Sequential,
        Network,
    )
    modules = list(network.modules())
    convolutions = [module for module in modules if isinstance(module, nn.Conv2d)]
    chain = [module for module in modules if isinstance(module, LAYERS + NORMS)]
    return (
        all(isinstance(module, kinds) for module in modules)
        and all(_is_plain(convolution) for convolution in convolutions)
        and all(_is_plain_pooling(module) for module in modules if isinstance(module, nn.MaxPool2d))
        and all(module.bias is not None for module in modules if isinstance(module, nn.Linear))
        and all(
            _is_plain_norm(module, before)
            for before, module in pairwise(chain)
            if isinstance(module, NORMS)
        )
        and isinstance(chain[0], LAYERS)
        and isinstance(modules[-1], nn.Linear)
        and not (convolutions and any(isinstance(module, nn.Dropout) for module in modules))
    )


def _is_plain(layer: nn.Conv2d) -> bool:
    """A square window that is moved by one pixel over an image with an even margin of zeros."""
    rest = (layer.stride, layer.dilation, layer.groups, layer.padding_mode)
    square = (
        not isinstance(layer.padding, str)
        and len({*layer.kernel_size}) == len({*layer.padding}) == 1
    )
    return square and rest == ((1, 1), (1, 1), 1, "zeros") and layer.bias is not None


def _is_plain_pooling(module: nn.MaxPool2d) -> bool:
    rest = (module.padding, module.dilation, module.return_indices)
    return module.kernel_size == module.stride == 2 and rest == (0, 1, False)


def _is_plain_norm(norm: nn.Module, before: nn.Module) -> bool:
    """Of the channels of the layer before it, with weights and running averages."""
    channels = (
        (nn.BatchNorm2d, before.out_channels)
        if isinstance(before, nn.Conv2d)
        else (nn.BatchNorm1d, getattr(before, "out_features", None))
    )
    return (
        isinstance(norm, channels[0])
        and norm.num_features == channels[1]
        and norm.momentum is not None
        and norm.affine
        and norm.track_running_stats
    )


def _stacked(layers: Sequence[nn.Module]) -> StackedLinear:
    return StackedConvolution(layers) if isinstance(layers[0], nn.Conv2d) else StackedLinear(layers)  # pyright: ignore[reportArgumentType]


def _modules_after_each_layer(template: Network) -> list[list[nn.Module]]:
    """What lies between one layer with weights and the next, in order; to flatten is each linear
    layer's own business.
    """
    between: list[list[nn.Module]] = []
    for module in template.modules():
        if isinstance(module, LAYERS):
            between.append([])
        elif isinstance(module, (*NORMS, nn.ReLU, nn.GELU, nn.Dropout, nn.MaxPool2d)):
            between[-1].append(module)
    return between[:-1]
