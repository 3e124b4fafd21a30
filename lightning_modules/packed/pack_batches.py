"""An epoch's batches for all members of a pack: each sees the inputs and targets that it would see
alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lightning_modules.packed.pack_evaluation import Source
from lightning_modules.packed.pack_member import Member

# batches that are prepared at once: enough to make Python's share small, few enough to keep memory
# flat
CHUNK = 64


class PackBatch(NamedTuple):
    """What one training step takes."""

    inputs: Sequence[Tensor]  # of each span, [B, ...]
    targets: Tensor  # of all members, [M, B, K]


def epoch_batches(
    spans: Sequence[Sequence[Member]], sources: Mapping[int, Source], epoch: int
) -> Iterator[PackBatch]:
    """All batches of an epoch, in order; the members of a span share their inputs."""
    owners = [members[0].data for members in spans]
    targets = [_epoch_targets(members, epoch) for members in spans]
    order = {}  # of each datamodule, its batches
    for data in owners:
        sampler = sources[id(data)].loader.sampler
        sampler.set_epoch(epoch)
        order[id(data)] = order.get(id(data)) or list(sampler)
    for start in range(0, len(next(iter(order.values()))), CHUNK):
        chunk = {owner: batches[start : start + CHUNK] for owner, batches in order.items()}
        sizes = [len(index) for index in next(iter(chunk.values()))]
        seen = {
            owner: sources[owner].loader.prepare(torch.cat(index), epoch).split(sizes)
            for owner, index in chunk.items()
        }
        prepared = [
            _span_batches(
                members[0].bound,
                seen[id(data)],
                table,
                data.training_row[torch.cat(chunk[id(data)])],
                sizes,
                epoch,
            )
            for members, data, table in zip(spans, owners, targets, strict=True)
        ]
        for parts in zip(*prepared, strict=True):
            inputs, wanted = zip(*parts, strict=True)
            yield PackBatch(inputs, torch.cat(wanted))


def _span_batches(
    bound: Any,
    inputs: Sequence[Tensor],
    table: Tensor,
    rows: Tensor,
    sizes: list[int],
    epoch: int,
) -> list[tuple[Tensor, Tensor]]:
    """A span's inputs and targets [members, B, K] of several batches, blended where the delivery of
    its one member, `bound`, asks for it.
    """
    targets = table[:, rows].split(sizes, 1)
    if not bound.blends:
        return list(zip(inputs, targets, strict=True))
    blended = [
        bound.blend(seen, wanted[0], its_rows, epoch)
        for seen, wanted, its_rows in zip(inputs, targets, rows.split(sizes), strict=True)
    ]
    return [(seen, wanted[None]) for seen, wanted in blended]


def _epoch_targets(members: Sequence[Member], epoch: int) -> Tensor:
    """A span's targets of an epoch as distributions [m, N, K]."""
    classes = members[0].data.num_classes
    tables = [member.bound.targets(epoch) for member in members]
    return torch.stack(
        [t if t.is_floating_point() else F.one_hot(t, classes).float() for t in tables]
    )
