"""Whether `torch.func` can map a network, found out on the `meta` device: without memory, data or
training.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lightning_modules.packed.layers.stacked_linear import Span
from lightning_modules.packed.vmapped_network import VmappedNetwork
from lightning_modules.threads import forward_flops

# what torch raises where something cannot be mapped
REFUSALS = (RuntimeError, ValueError, TypeError, AttributeError, IndexError, AssertionError)


class VmapTrial(NamedTuple):
    """What one training step of a network would be."""

    refused: str | None  # why it cannot be mapped, in torch's words
    flops: float = 0.0  # of a step of one member
    memory: int = 0  # bytes of one member: weights, gradients, moments, and what autograd keeps


def try_vmap(
    make: Callable[[], nn.Module], input_shape: tuple[int, ...], classes: int, batch_size: int
) -> VmapTrial:
    """One step of two members with inputs and seeds of their own.

    >>> try_vmap(lambda: nn.Linear(4, 3), (4,), 3, batch_size=10).flops == 3 * 10 * 2 * 4 * 3
    True
    """
    with torch.device("meta"):
        members = [make() for _ in range(2)]
        inputs = [torch.zeros(batch_size, *input_shape) for _ in members]
        targets = torch.zeros(2, batch_size, classes)
    kept = 0

    def note(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.nbytes
        return tensor

    try:
        forward = batch_size * forward_flops(members[0], input_shape)
        packed = VmappedNetwork(members, "meta")
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            packed.differentiate(inputs, targets, [Span(0, 1), Span(1, 2)], [0, 1])
    except REFUSALS as error:
        return VmapTrial(" ".join(str(error).split())[:160] or type(error).__name__)
    weights = sum(tensor.nbytes for tensor in packed.tensors().values())
    # forward, and backward twice as much
    return VmapTrial(None, 3 * forward, (kept + 4 * weights) // len(members))
