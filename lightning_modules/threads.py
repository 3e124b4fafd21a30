"""How many threads a CPU gives to a training: one, where more would only wait for each other."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

# Floating-point operations of a training step below which one thread is used. Two threads took 1.0
# to 2.7 times as long there on two cores that others used as well.
SMALL = 1e9
TOLD_BY = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def use_threads_for(network: nn.Module, input_shape: tuple[int, ...], batch_size: int) -> None:
    """Let a small network train with one thread, unless the environment says how many.

    The rule looks at the network and its batches, never at the machine: the number of threads can
    change the last bits of a sum, and a small network's are then the same on all machines of a
    kind.
    """
    if any(name in os.environ for name in TOLD_BY):
        return
    if 3 * batch_size * forward_flops(network, input_shape) < SMALL:
        torch.set_num_threads(1)


def forward_flops(network: nn.Module, input_shape: tuple[int, ...]) -> float:
    """Floating-point operations of one item's forward pass.

    >>> forward_flops(nn.Linear(10, 3), (10,))
    60
    """
    first = next(network.parameters())
    was_training = network.training
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network.eval()(torch.zeros(1, *input_shape, device=first.device, dtype=first.dtype))
    network.train(was_training)
    return counter.get_total_flops()


@contextmanager
def one_thread() -> Iterator[None]:
    """Do what takes a millisecond in one thread: where other work holds a core, two wait for each
    other many times as long as that.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
