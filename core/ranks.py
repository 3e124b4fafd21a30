"""Sums and collections over the processes of a DDP run; a single process gets back what it gave."""

from typing import TypeVar

import torch
from torch import Tensor
from torch.distributed import (
    all_gather_object,
    all_reduce,
    broadcast_object_list,
    get_rank,
    get_world_size,
    is_available,
    is_initialized,
)

T = TypeVar("T")


def rank_and_ranks() -> tuple[int, int]:
    """This process's number and how many there are."""
    return (get_rank(), get_world_size()) if is_available() and is_initialized() else (0, 1)


def sum_over_ranks(tensor: Tensor) -> Tensor:
    """The sum over all ranks, on each of them.

    >>> sum_over_ranks(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if rank_and_ranks()[1] > 1:
        tensor = tensor.clone()
        all_reduce(tensor)
    return tensor


def gather_over_ranks(tensor: Tensor) -> Tensor:
    """The rows of all ranks, one rank after the other; their numbers of rows may differ."""
    ranks = rank_and_ranks()[1]
    if ranks == 1:
        return tensor
    parts: list[Tensor] = [torch.empty(0)] * ranks
    all_gather_object(parts, tensor.cpu())
    return torch.cat(parts).to(tensor.device)


def from_first_rank(value: T) -> T:
    """The first rank's value on every rank.

    It is for what only one of them can be sure to find, such as a file on its own disk.

    >>> from_first_rank("found")
    'found'
    """
    if rank_and_ranks()[1] > 1:
        values = [value]
        broadcast_object_list(values)
        return values[0]
    return value
