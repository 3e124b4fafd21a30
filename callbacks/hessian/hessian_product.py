"""Products of a vector with the Hessian of the soft cross-entropy, averaged exactly over any number
of items.
"""

from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.ranks import sum_over_ranks

Pair = tuple[Tensor, Tensor]  # inputs and annotator distributions


class HessianProduct:
    """`product(vector)`: the Hessian of the mean soft cross-entropy over all items, times a vector
    over all parameters.

    `batches()` gives (inputs, targets) pairs in a fixed order, of any sizes. Sums over items are
    divided once by their number, so a ragged last batch counts as its items do. Each batch is
    differentiated and freed before the next one: memory is bounded by the batch size. Where there
    is one batch only, its gradient's graph is kept between products, which saves a third to a half
    of each. In a DDP run the batches are this rank's share, and products are sums over ranks.

    The softmax does not see a shift of all logits:

    >>> network = nn.Linear(2, 2, bias=False)
    >>> product = HessianProduct(network, lambda: [(torch.eye(2), torch.eye(2))])
    >>> product(torch.ones(4)).abs().max().item() < 1e-6
    True
    """

    def __init__(self, network: nn.Module, batches: Callable[[], Iterable[Pair]]):
        self.network, self.batches = network, batches
        self.parameters = [
            parameter for parameter in network.parameters() if parameter.requires_grad
        ]
        self.size = sum(parameter.numel() for parameter in self.parameters)
        self.spent = 0  # products so far
        self._kept: tuple[tuple[Tensor, ...], float] | None = None
        self._several = False

    def __call__(self, vector: Tensor) -> Tensor:
        """The product with one vector over all parameters."""
        self.spent += 1
        parts = self._cut(vector)
        if self._kept is None:
            total, items = self._over_batches(parts)
        else:
            gradient, items = self._kept
            total = self._joined(
                torch.autograd.grad(
                    gradient, self.parameters, parts, retain_graph=True, materialize_grads=True
                )
            )
        both = sum_over_ranks(torch.cat([total, total.new_tensor([items])]))
        return both[:-1] / both[-1]

    def _over_batches(self, parts: list[Tensor]) -> tuple[Tensor, float]:
        total, items = torch.zeros(self.size, dtype=parts[0].dtype, device=parts[0].device), 0.0
        batches = iter(self.batches())
        batch = next(batches, None)
        while batch is not None:
            following = next(batches, None)
            alone = following is None and not self._several
            self._several = not alone
            gradient = self._gradient(*batch)
            total += self._joined(
                torch.autograd.grad(
                    gradient, self.parameters, parts, retain_graph=alone, materialize_grads=True
                )
            )
            items += len(batch[0])
            if alone:
                self._kept = gradient, items
            del gradient
            batch = following
        return total, items

    def _gradient(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        loss = F.cross_entropy(self.network(inputs), targets, reduction="sum")
        return torch.autograd.grad(loss, self.parameters, create_graph=True, materialize_grads=True)

    def _cut(self, vector: Tensor) -> list[Tensor]:
        sizes = [parameter.numel() for parameter in self.parameters]
        return [
            part.view_as(parameter)
            for part, parameter in zip(vector.split(sizes), self.parameters, strict=True)
        ]

    def _joined(self, parts: Iterable[Tensor]) -> Tensor:
        return torch.cat([part.reshape(-1) for part in parts])
