"""Sums and collections over the processes of a DDP run; in a process of its own they change nothing."""

import torch
from torch import Tensor
from torch.distributed import all_gather_object, all_reduce, get_rank, get_world_size, is_available, is_initialized


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
