"""BatchNorm for networks without places, and its rule for a batch of one item."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

Norm = Literal["none", "batch"]


class BatchNorm1d(nn.BatchNorm1d):
    """torch's, which refuses to train on one item: here that is normalised by the running
    statistics, as in evaluation, and leaves them as they are.

    The last batch of an epoch may be one item, and so may a process's share of any batch under
    DDP. One item has no variance, and to leave it out would be another training than was asked for.

    >>> import torch
    >>> norm = BatchNorm1d(2)
    >>> norm(torch.ones(1, 2)).tolist() == norm.eval()(torch.ones(1, 2)).tolist()
    True
    >>> norm.num_batches_tracked.item()
    0
    """

    def forward(self, input: Tensor) -> Tensor:
        """[B, C] normalised, by the batch in training where it has more than one item."""
        if self.training and len(input) == 1:
            return F.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(input)
