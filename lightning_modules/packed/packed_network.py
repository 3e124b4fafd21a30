"""Many networks of one shape as one: a chain of stacked layers, with BatchNorm, activations,
pooling and dropout between them, that is gone through forward and backward without autograd.
"""

from collections.abc import Sequence
from copy import copy

import torch
from torch import Tensor

from lightning_modules.networks import Network
from lightning_modules.packed.layers.pointwise import Dropout, dropout_masks
from lightning_modules.packed.layers.stacked_batch_norm import STATISTICS, StackedBatchNorm
from lightning_modules.packed.layers.stacked_chain import stacked_chain
from lightning_modules.packed.layers.stacked_convolution import StackedConvolution
from lightning_modules.packed.layers.stacked_linear import Span, StackedLayer


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
        self.stages = stacked_chain(members)

    @property
    def convolutional(self) -> bool:
        """Whether its activations are so large that only some members' fit into the processor's
        cache.
        """
        return any(isinstance(stage, StackedConvolution) for stage in self.stages.values())

    @property
    def dropouts(self) -> list[Dropout]:
        """Where values are dropped in training, in order."""
        return [stage for stage in self.stages.values() if isinstance(stage, Dropout)]

    @torch.no_grad()
    def __call__(
        self,
        inputs: Sequence[Tensor],
        spans: Sequence[Span],
        dropout_seeds: Sequence[int] | None = None,
    ) -> Tensor:
        """Logits [M, B, K] from the inputs of each span, [B, ...]; in training, `dropout_seeds` has
        one seed for each span.
        """
        logits = []
        for number, (span, seen) in enumerate(zip(spans, inputs, strict=True)):
            seed = None if dropout_seeds is None else dropout_seeds[number]
            masks = None if seed is None else self.drawn_masks(len(seen), seed)
            logits.append(self.part(span).forward(seen, masks))
        return torch.cat(logits)

    def forward(self, inputs: Tensor, masks: Sequence[Tensor] | None) -> Tensor:
        """Logits [M, B, K] of members that all see the inputs [B, ...]; in training, with the masks
        of all dropouts.
        """
        first = next(iter(self.stages.values()))
        if isinstance(first, StackedConvolution):
            hidden = inputs.permute(1, 2, 3, 0)
        else:
            hidden = inputs.flatten(1).expand(len(first.weight), -1, -1)
        left = iter(masks or ())
        for stage in self.stages.values():
            if isinstance(stage, Dropout):
                stage.mask = next(left, None)
            hidden = stage.forward(hidden, masks is not None)
        return hidden

    def backward(self, gradient: Tensor) -> None:
        """From the gradient of the logits of the last `forward` to those of all weights."""
        stages = list(self.stages.values())
        for stage in reversed(stages):
            gradient = stage.backward(gradient, further=stage is not stages[0])

    def drawn_masks(self, items: int, seed: int) -> list[Tensor]:
        """A training step's masks of all dropouts, as each member would draw them alone."""
        return dropout_masks(self.dropouts, items, seed, like=next(iter(self.tensors().values())))

    def part(self, span: Span) -> "PackedNetwork":
        """Some members alone, in the same memory."""
        view = copy(self)
        view.stages = {
            name: stage.part(span) if isinstance(stage, StackedLayer) else copy(stage)
            for name, stage in self.stages.items()
        }
        return view

    def keep(self, members: Tensor) -> None:
        """Go on with these members alone."""
        for stage in self.stages.values():
            if isinstance(stage, StackedLayer):
                stage.keep(members)

    def tensors(self) -> dict[str, Tensor]:
        """The stacked weights by the names that they have in an ordinary network.

        BatchNorm's are the last, as in the states of begun packs, which have moments in this order.
        """
        layers = [pair for pair in self.stages.items() if isinstance(pair[1], StackedLayer)]
        layers.sort(key=lambda pair: isinstance(pair[1], StackedBatchNorm))
        return {
            f"{name}.{kind}": getattr(layer, kind)
            for name, layer in layers
            for kind in ("weight", "bias")
        }

    def buffers(self) -> dict[str, Tensor]:
        """What the members keep beside their weights, stacked: BatchNorm's running statistics."""
        return {
            f"{name}.{kind}": getattr(norm, kind)
            for name, norm in self.stages.items()
            if isinstance(norm, StackedBatchNorm)
            for kind in STATISTICS
        }
