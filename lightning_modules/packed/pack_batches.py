"""An epoch's batches for all members of a pack: each sees the inputs and targets that it would see
alone.

Order and targets of an epoch are made on the host and moved to the device before its first batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lightning_modules.packed.layers.stacked_linear import Span
from lightning_modules.packed.pack_evaluation import Source
from lightning_modules.packed.pack_member import Member

# batches that are prepared at once: enough to make Python's share small, few enough to keep memory
# flat
CHUNK = 64


class PackBatch(NamedTuple):
    """What one training step takes."""

    inputs: Sequence[Tensor]  # of each span, [B, ...]
    targets: Tensor  # of all members, [M, B, K]


def spans_of(members: Sequence[Member]) -> list[Span]:
    """Runs of members that see the same inputs: those that share a datamodule, but for one whose
    delivery blends its inputs.
    """
    spans: list[Span] = []
    owner = None
    for row, member in enumerate(members):
        sees = (id(member.data), row if member.bound.blends else None)
        if sees == owner:
            spans[-1] = Span(spans[-1].start, row + 1)
        else:
            spans.append(Span(row, row + 1))
            owner = sees
    return spans


def epoch_batches(
    spans: Sequence[Sequence[Member]],
    sources: Mapping[int, Source],
    epoch: int,
    device: torch.device,
) -> Iterator[PackBatch]:
    """All batches of an epoch on this device, in order; the members of a span share their
    inputs.
    """
    owners = [id(members[0].data) for members in spans]
    targets = [_epoch_targets(members, epoch).to(device) for members in spans]
    order = {owner: _EpochOrder(sources[owner], epoch, device) for owner in dict.fromkeys(owners)}
    sizes = next(iter(order.values())).sizes
    for start in range(0, len(sizes), CHUNK):
        items = slice(sum(sizes[:start]), sum(sizes[: start + CHUNK]))
        parts = sizes[start : start + CHUNK]
        seen = {owner: order[owner].inputs(items).split(parts) for owner in order}
        prepared = [
            _span_batches(
                members[0].bound, seen[owner], table, order[owner].rows[items], parts, epoch
            )
            for members, owner, table in zip(spans, owners, targets, strict=True)
        ]
        for batch in zip(*prepared, strict=True):
            inputs, wanted = zip(*batch, strict=True)
            yield PackBatch(inputs, torch.cat(wanted))


class _EpochOrder:
    """The items of a datamodule's epoch in order, and their rows among its training votes."""

    def __init__(self, source: Source, epoch: int, device: torch.device):
        source.loader.sampler.set_epoch(epoch)
        batches = list(source.loader.sampler)
        self.sizes = [len(index) for index in batches]
        items = torch.cat(batches)
        self._items, self.rows = items, source.training_row[items].to(device)
        self._prepare, self._epoch, self._device = source.loader.prepare, epoch, device

    def inputs(self, items: slice) -> Tensor:
        """As the network is to see these."""
        return self._prepare(self._items[items], self._epoch).to(self._device)


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
