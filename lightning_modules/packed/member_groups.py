"""Some members of a pack at a time, through many steps: their weights, gradients and moments then
stay in the processor's cache, and an optimizer's step is not a journey through memory.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from core.randomness import generator
from lightning_modules.packed.layers.stacked_linear import Span
from lightning_modules.packed.packed_network import PackedNetwork

# Weights, gradients and two moments of a group: with more it would leave the cache that each core
# has for itself or shares; with less, Python's work for each group would show.
BYTES = 10 << 20


class MemberGroup(NamedTuple):
    """Members that see the same inputs and are trained together."""

    span: int  # the number of theirs
    rows: Span  # among the active members
    network: PackedNetwork  # these members alone
    updates: list[Callable[[], None]]  # an optimizer's step of all of them


def group_spans(spans: Sequence[Span], member_bytes: int, whole: bool) -> list[tuple[int, Span]]:
    """Each span in even parts that stay in cache, with the span's number; `whole` leaves them
    whole.

    >>> group_spans([Span(0, 12), Span(12, 13)], member_bytes=BYTES // 5, whole=False)
    [(0, Span(start=0, stop=4)), (0, Span(start=4, stop=8)), (0, Span(start=8, stop=12)), \
(1, Span(start=12, stop=13))]
    """
    groups = []
    for number, (start, stop) in enumerate(spans):
        most = stop - start if whole else max(1, BYTES // member_bytes)
        parts = -(-(stop - start) // most)
        edges = [start + (stop - start) * part // parts for part in range(parts + 1)]
        groups += [(number, Span(*edge)) for edge in itertools.pairwise(edges)]
    return groups


def step_masks(
    network: PackedNetwork, seed: int, step: int, sizes: Sequence[int]
) -> list[list[Tensor]]:
    """What members of one seed drop in each of several steps from `step` on, with batches of these
    sizes: they draw the same, and what each would draw alone.
    """
    if not network.dropouts:
        return [[] for _ in sizes]
    draws = (generator(seed, "dropout", step + n, 0) for n in range(len(sizes)))
    return [
        network.drawn_masks(size, int(draw.integers(2**63)))
        for size, draw in zip(sizes, draws, strict=True)
    ]


@torch.no_grad()
def train_group(
    group: MemberGroup,
    inputs: Sequence[Tensor],
    masks: Sequence[Sequence[Tensor]],
    targets: Tensor,
    steps: Tensor,
) -> Tensor:
    """Several steps of a group; returns each member's loss, summed over items.

    Args:
        group: The members.
        inputs: Of each step, [B, ...].
        masks: Of each step, those of all dropouts.
        targets: Of all steps, one after the other, [m, items, K].
        steps: How many steps have been made; counted on in place.
    """
    sizes = [len(seen) for seen in inputs]
    over = torch.cat([targets.new_full((size, 1), 1 / size) for size in sizes])
    totals = (targets.sum(-1, keepdim=True) * over).split(sizes, 1)
    negatives = (-targets * over).split(sizes, 1)
    said = []
    # the gradient of a loss is (softmax * its targets' total - targets) / B
    for seen, drawn, total, negative in zip(inputs, masks, totals, negatives, strict=True):
        log_probs = group.network.forward(seen, drawn).log_softmax(-1)
        group.network.backward(torch.addcmul(negative, log_probs.exp(), total))
        steps += 1
        for update in group.updates:
            update()
        said.append(log_probs)
    return -(targets * torch.cat(said, 1)).sum((1, 2), dtype=torch.float64)
