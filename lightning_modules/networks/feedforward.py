"""Fully connected networks: SimpleFFN and DeeperFFN on raw inputs, MLPHead on frozen embeddings."""

from itertools import pairwise
from math import prod

from torch import Tensor, nn

from core.errors import InputError
from lightning_modules.networks.batch_norm import BatchNorm1d, Norm
from lightning_modules.networks.network import Network


class _FeedForward(Network):
    can_be_packed = True

    def __init__(
        self,
        sizes: tuple[int, ...],
        num_classes: int,
        activation: type[nn.Module],
        dropout: float,
        norm: Norm = "none",
    ):
        super().__init__()
        layers: list[nn.Module] = [nn.Flatten()]
        for size_in, size_out in pairwise(sizes):
            layers.append(nn.Linear(size_in, size_out))
            if norm == "batch":
                layers.append(BatchNorm1d(size_out))
            layers.append(activation())
            if dropout:
                layers.append(nn.Dropout(dropout))
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(sizes[-1], num_classes)

    def features(self, inputs: Tensor) -> Tensor:
        return self.body(inputs)


class SimpleFFN(_FeedForward):
    """One hidden layer of 128, ReLU.

    >>> import torch
    >>> SimpleFFN((1, 8, 8), 10).features(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 128])
    """

    def __init__(self, input_shape: tuple[int, ...], num_classes: int):
        super().__init__((prod(input_shape), 128), num_classes, nn.ReLU, dropout=0.0)


class DeeperFFN(_FeedForward):
    """Hidden layers of 256 and 128, ReLU."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int):
        super().__init__((prod(input_shape), 256, 128), num_classes, nn.ReLU, dropout=0.0)


class MLPHead(_FeedForward):
    """Two layers with GELU and dropout, for frozen embeddings.

    The papers state neither the hidden size nor the dropout, and no normalisation: `norm: batch` is
    BatchNorm between the hidden layer and GELU.

    >>> import torch
    >>> MLPHead((384,), 3, norm="batch")(torch.zeros(2, 384)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        num_classes: int,
        hidden: int = 256,
        dropout: float = 0.1,
        norm: Norm = "none",
    ):
        if not 0 <= dropout < 1:
            raise InputError(f"MLPHead's dropout is {dropout}; it must be at least 0 and below 1.")
        super().__init__((prod(input_shape), hidden), num_classes, nn.GELU, dropout, norm)
