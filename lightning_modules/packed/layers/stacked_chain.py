"""Which layers packs know, and the stages that stand for them: stacked layers, and what lies
between them.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from torch import nn

from lightning_modules.networks import Network
from lightning_modules.packed.layers.pointwise import GELU, Dropout, Flatten, ReLU
from lightning_modules.packed.layers.stacked_batch_norm import StackedBatchNorm
from lightning_modules.packed.layers.stacked_convolution import MaxPool, StackedConvolution
from lightning_modules.packed.layers.stacked_linear import StackedLinear

LAYERS = (nn.Linear, nn.Conv2d)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
BETWEEN = (nn.MaxPool2d, nn.ReLU, nn.GELU, nn.Dropout)


def stacked_chain(members: Sequence[Network]) -> dict[str, Any]:
    """The stages of networks of one shape, in order, by the names of their modules.

    Each has `forward(hidden, training)`, and `backward(gradient, further)` with what the last
    `forward` has kept.
    """
    stages: dict[str, Any] = {}
    width, images = 0, False  # what the last layer gives
    for name, module in members[0].named_modules():
        if not isinstance(module, LAYERS + NORMS + BETWEEN):
            continue
        own: Any = [member.get_submodule(name) for member in members]
        if images and isinstance(module, nn.Linear):
            stages[f"before {name}"] = Flatten()
        if isinstance(module, LAYERS):
            width, images = module.weight.shape[0], isinstance(module, nn.Conv2d)
        if isinstance(module, nn.Conv2d):
            stages[name] = StackedConvolution(own)
        elif isinstance(module, nn.Linear):
            stages[name] = StackedLinear(own)
        elif isinstance(module, NORMS):
            stages[name] = StackedBatchNorm(own)
        elif isinstance(module, nn.MaxPool2d):
            stages[name] = MaxPool(module.ceil_mode)
        elif isinstance(module, nn.ReLU):
            stages[name] = ReLU()
        elif isinstance(module, nn.GELU):
            stages[name] = GELU(module.approximate)
        elif module.p:
            stages[name] = Dropout(module.p, width)
    return stages


def can_be_packed(network: Network) -> bool:
    """Whether a network is a plain chain of linear layers, or of convolutions and then linear
    layers, that its packed form can compute.
    """
    kinds = (*LAYERS, *NORMS, *BETWEEN, nn.Flatten, nn.Sequential, Network)
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
