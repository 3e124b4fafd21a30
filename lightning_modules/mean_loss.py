"""The mean loss of an epoch, summed on the device."""

import torch
from torch import Tensor
from torchmetrics import Metric


class MeanLoss(Metric):
    """The mean over items of the losses of batches, each of which is a mean over its own items.

    A step adds two numbers where they are, and nothing waits for them. Lightning asks for the mean
    once, at the epoch's end, over all ranks. (Logging the loss itself in every step took a quarter
    of a small network's time.)

    >>> mean = MeanLoss()
    >>> mean.update(torch.tensor(1.0), items=3)
    >>> mean.update(torch.tensor(3.0), items=1)
    >>> mean.compute()
    tensor(1.5000)
    """

    total: Tensor
    items: Tensor

    def __init__(self):
        super().__init__()
        self.add_state("total", torch.tensor(0.0), dist_reduce_fx="sum")
        self.add_state("items", torch.tensor(0.0), dist_reduce_fx="sum")

    def update(self, loss: Tensor, items: int) -> None:
        """Count a batch; in single precision, or in the loss's where that is higher."""
        if loss.dtype == torch.float64 != self.total.dtype:
            self.total = self.total.double()
        # in place: to set a state anew would cost more than the sum
        self.total.add_(loss.detach().to(self.total.dtype) * items)
        self.items.add_(items)

    def compute(self) -> Tensor:
        """The mean over all items so far."""
        return self.total / self.items
