"""An epoch's training steps of a mapped pack, without a wait for its device."""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from core.randomness import generator
from lightning_modules.packed.layers.stacked_linear import Span
from lightning_modules.packed.pack_batches import PackBatch
from lightning_modules.packed.vmapped_network import VmappedNetwork


def train_mapped_epoch(
    network: VmappedNetwork,
    batches: Iterable[PackBatch],
    spans: Sequence[Span],
    seeds: Sequence[int],
    steps: Tensor,
    first_step: int,
    updates: Sequence[Callable[[], None]],
) -> Tensor:
    """Each member's mean loss, on the network's device.

    Args:
        network: Whose weights are trained.
        batches: Of the epoch, on the same device.
        spans: Of members that see the same inputs.
        seeds: Of the members of each span.
        steps: How many steps were made, as the optimizer's kernels are told.
        first_step: Of the epoch.
        updates: The optimizer's step, of each group of members with equal options.
    """
    total: Tensor | float = 0.0
    items = 0
    steps.fill_(first_step)
    for step, (inputs, targets) in enumerate(batches, first_step):
        draws = [int(generator(seed, "dropout", step, 0).integers(2**63)) for seed in seeds]
        losses = network.differentiate(inputs, targets, spans, draws)
        steps += 1
        for update in updates:
            update()
        total = total + losses.double() * len(inputs[0])
        items += len(inputs[0])
    assert isinstance(total, torch.Tensor)
    return total / items
