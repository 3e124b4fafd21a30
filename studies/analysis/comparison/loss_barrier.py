"""How high the loss rises on the straight line between the weights of two networks: whether their
solutions lie in one basin.

The statistics that BatchNorm collected in training fit neither the mixture of two networks nor its
activations, so a barrier may be theirs and not that of the weights (Jordan et al. 2023). Hence two
curves: plain, with everything interpolated, and with the statistics measured anew at every point.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.compat import BatchNorm
from core.errors import InputError
from datamodules.loading import Batch

State = dict[str, Tensor]
Batches = Callable[[], Iterable[Batch]]  # gives the same items each time it is called


@dataclass(frozen=True)
class LossLine:
    """Mean cross-entropy against annotators, in nats, at points from one network (alpha 0) to
    another (alpha 1).

    >>> LossLine(alphas=[0.0, 0.5, 1.0], plain=[1.0, 4.0, 2.0], reestimated=None).barrier
    2.5
    """

    alphas: list[float]
    plain: list[float]
    # None: the network has no BatchNorm whose statistics could be measured anew
    reestimated: list[float] | None

    @property
    def barrier(self) -> float:
        """The most by which the loss lies above the straight line between the losses of both ends;
        0 where it nowhere does.
        """
        return _barrier(self.alphas, self.plain)

    @property
    def reestimated_barrier(self) -> float | None:
        """The same, ends included, with BatchNorm statistics measured anew; None where there are
        none.
        """
        return None if self.reestimated is None else _barrier(self.alphas, self.reestimated)


def loss_line(
    network: nn.Module,
    start: State,
    end: State,
    items: Batches,
    training_items: Batches,
    points: int = 11,
) -> LossLine:
    """The loss on `items` along the line between two states of a network, which itself is left
    alone.

    `training_items` is what BatchNorm statistics are measured on: as they are, without
    augmentation. The paper states neither the number of points nor the items.
    """
    if points < 3:
        raise InputError(
            f"points is {points}; a line needs at least 3 points, its ends and one between them."
        )
    network = deepcopy(network).requires_grad_(False).eval()
    alphas = [point / (points - 1) for point in range(points)]
    plain, reestimated = [], []
    for alpha in alphas:
        network.load_state_dict(interpolate(start, end, alpha))
        plain.append(mean_loss(network, items()))
        if batch_norms(network):
            reestimate_batch_norms(network, training_items())
            reestimated.append(mean_loss(network, items()))
    return LossLine(alphas, plain, reestimated or None)


def interpolate(start: State, end: State, alpha: float) -> State:
    """The state at `alpha` between two; exactly the first at 0 and the second at 1.

    Whole numbers, such as counters, are the first's.

    >>> start, end = {"weight": torch.tensor([0.0, 4.0])}, {"weight": torch.tensor([1.0, 0.0])}
    >>> interpolate(start, end, 0.25)
    {'weight': tensor([0.2500, 3.0000])}
    """
    return {
        name: torch.lerp(value, end[name], alpha) if value.is_floating_point() else value
        for name, value in start.items()
    }


@torch.no_grad()
def mean_loss(network: nn.Module, batches: Iterable[Batch]) -> float:
    """Mean cross-entropy of a network in eval mode against the targets' distributions.

    Logits are float64, so that far-off weights give a number.
    """
    total, items = 0.0, 0
    for inputs, targets, _ in batches:
        total += F.cross_entropy(network(inputs).double(), targets.double(), reduction="sum").item()
        items += len(inputs)
    return total / items


def batch_norms(network: nn.Module) -> list[BatchNorm]:
    """The layers that keep statistics of what they saw in training."""
    return [
        layer
        for layer in network.modules()
        if isinstance(layer, BatchNorm) and layer.track_running_stats
    ]


@torch.no_grad()
def reestimate_batch_norms(network: nn.Module, batches: Iterable[Batch]) -> None:
    """Replace all BatchNorm statistics by their plain average over batches; everything else stays
    in eval mode, dropout too.
    """
    layers = batch_norms(network)
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # a cumulative average, in which every batch counts the same
        layer.train()
    for inputs, _, _ in batches:
        network(inputs)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
        layer.eval()


def _barrier(alphas: list[float], losses: list[float]) -> float:
    return max(
        loss - ((1 - alpha) * losses[0] + alpha * losses[-1])
        for alpha, loss in zip(alphas, losses, strict=True)
    )
