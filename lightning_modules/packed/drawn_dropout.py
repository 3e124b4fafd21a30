"""Dropout of many networks that are mapped as one: each draws what it would draw alone."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor
from torch.overrides import TorchFunctionMode

from lightning_modules.packed.layers.stacked_linear import Span

KINDS = (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d)


class DrawnDropout(TorchFunctionMode):
    """Within it, the dropout of a mapped network is drawn from a seed for each span of members.

    A mask is made by the same function, from the same seed and on the same device as that of a
    network alone; members of a span draw the same. Nothing else may be random: vmap refuses it.
    """

    def __init__(self, spans: Sequence[Span], seeds: Sequence[int]):
        super().__init__()
        self._sizes = [span.stop - span.start for span in spans]
        self._seeds = seeds
        self._states: list[Tensor] = []  # how far the random numbers of each span have come

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Take over dropout, and leave all else as it is."""
        if func in KINDS:
            return self._dropout(func, *args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _dropout(
        self,
        kind: Callable[..., Tensor],
        input: Tensor,
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
    ) -> Tensor:
        if not training or not p:
            return input

        def masks(like: Tensor) -> Tensor:
            return self._masks(lambda: kind(torch.ones_like(like), p, True), like.device)

        return _Masked.apply(input, masks)  # pyright: ignore

    def _masks(self, draw: Callable[[], Tensor], device: torch.device) -> Tensor:
        """[M, ...]: each span's random numbers go on from where they were."""
        generator = _generator(device)
        if not self._states:
            self._states = [generator.manual_seed(seed).get_state() for seed in self._seeds]
        masks = []
        for number, size in enumerate(self._sizes):
            generator.set_state(self._states[number])
            mask = draw()
            self._states[number] = generator.get_state()
            masks.append(mask.expand(size, *mask.shape))
        return torch.cat(masks)


def _generator(device: torch.device) -> Generator:
    """The one that dropout draws from on this device; its state lies on the host."""
    if device.type == "cuda":
        return torch.cuda.default_generators[device.index]
    return torch.default_generator


class _Masked(torch.autograd.Function):
    """A network's activations times a mask of its own; `masks` gives those of all networks."""

    @staticmethod
    def forward(activations: Tensor, masks: Callable[[Tensor], Tensor]) -> Tensor:
        """Of what all members share: the inputs of a single span."""
        return activations * masks(_contiguous(activations))[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        """Nothing is kept: autograd follows what `vmap` computes."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> tuple[Tensor, int]:
        """Of all members at once."""
        activations, masks = args
        own = activations.movedim(in_dims[0], 0)
        return own * masks(_contiguous(own[0])), 0


def _contiguous(like: Tensor) -> Tensor:
    """Without values, in the order in which a network alone has its activations in memory."""
    return torch.empty(like.shape, dtype=like.dtype, device=like.device)
