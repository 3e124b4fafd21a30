"""Many independent classifiers trained as one: seeds, deliveries, learning rates, schedules and
early stopping per member.

A member is an ordinary `AnnotatorClassifier` with its datamodule. It starts from the weights, sees
the batches and targets and follows the optimizer, schedule and stopping rule that it would have had
alone; only the arithmetic is shared. Lightning's Trainer is left out on purpose: its own cost per
step is of the size of a whole packed step.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from lightning_modules.packed.fused_optimizer import fused_kernel
from lightning_modules.packed.layers.stacked_linear import Span
from lightning_modules.packed.mapped_epoch import train_mapped_epoch
from lightning_modules.packed.member_groups import MemberGroup, group_spans, step_masks, train_group
from lightning_modules.packed.pack_batches import CHUNK, PackBatch, epoch_batches, spans_of
from lightning_modules.packed.pack_evaluation import (
    SpanEvaluation,
    read_from_device,
    shared_sources,
)
from lightning_modules.packed.pack_member import Member
from lightning_modules.packed.packed_form import packed_form
from lightning_modules.packed.vmapped_network import VmappedNetwork

ITEMS = 512  # of one evaluation pass: all of them would need much memory
# the same for convolutions: what they compute of these is to stay in the processor's cache
IMAGES = 128


class PackedClassifier:
    """Trains members of equal shape at once.

    Members that share a datamodule are to follow one another in the list. Nothing waits for the
    device within an epoch; `read_from_device` gives what is known on the host.

    `fit` goes on until every member has finished; `after_epoch(pack)` is called after each epoch,
    to report progress and save state.
    """

    def __init__(self, members: Sequence[Member], device: torch.device | str = "cpu"):
        self.members, self.device = list(members), torch.device(device)
        self.active = list(range(len(self.members)))
        self.epoch = 0
        networks = [member.classifier.network for member in self.members]
        self.network = packed_form(networks, self.device)
        self.moments = [
            torch.zeros_like(tensor) for _ in range(2) for tensor in self.network.tensors().values()
        ]
        self.sources = shared_sources(self.members, self.device)
        self._attach()

    def _attach(self) -> None:
        """Cut the stacked tensors into the active members' slices: of each, its weights, gradients
        and moments.
        """
        tensors = list(self.network.tensors().values())
        gradients = [tensor.grad for tensor in tensors]
        columns = (tensors, gradients, self.moments[: len(tensors)], self.moments[len(tensors) :])
        self.slices = [
            [[t.detach()[row] for t in column] for column in columns]  # pyright: ignore
            for row in range(len(self.active))
        ]
        self._set_rates()

    def _members(self, span: Span) -> list[Member]:
        return [self.members[m] for m in self.active[slice(*span)]]

    def steps_done(self) -> int:
        """How many steps each active member has made."""
        return self.epoch * len(next(iter(self.sources.values())).loader)

    def _set_rates(self) -> None:
        """Members go through their steps in groups, and those of equal options in a group make an
        optimizer's step as one.
        """
        kernel = fused_kernel(self.members[0].optimizer)
        self.steps = torch.tensor(0.0, device=self.device)
        if isinstance(self.network, VmappedNetwork):
            self.updates = self._updates(Span(0, len(self.active)), kernel)
            return
        tensors = self.network.tensors().values()
        member_bytes = 4 * sum(tensor.nbytes for tensor in tensors) // len(self.active)
        self.groups = [
            MemberGroup(number, rows, self.network.part(rows), self._updates(rows, kernel))
            for number, rows in group_spans(self.spans, member_bytes, self.network.convolutional)
        ]

    def _updates(self, rows: Span, kernel: Callable[..., None]) -> list[Callable[[], None]]:
        equal: dict[tuple[float, float], list[list[Tensor]]] = {}
        for member, columns in zip(self._members(rows), self.slices[slice(*rows)], strict=True):
            key = (member.rate, member.optimizer.param_groups[0]["weight_decay"])
            for together, own in zip(equal.setdefault(key, [[], [], [], []]), columns, strict=True):
                together.extend(own)
        return [
            partial(kernel, *columns, self.steps, lr=rate, weight_decay=decay)
            for (rate, decay), columns in equal.items()
        ]

    @property
    def spans(self) -> list[Span]:
        """Runs of active members that see the same inputs."""
        return spans_of([self.members[m] for m in self.active])

    def fit(self, after_epoch: Callable[["PackedClassifier"], None] = lambda pack: None) -> None:
        """Train until every member has finished."""
        while self.active:
            (losses,) = read_from_device(self.train_epoch())
            scores = self._evaluate()
            self.epoch += 1
            for row, m in enumerate(self.active):
                self.members[m].end_epoch(
                    {"train/loss": losses[row].item(), **scores[row]},
                    lambda row=row: self.member_state(row),
                )
            self._drop_finished()
            after_epoch(self)

    def train_epoch(self) -> Tensor:
        """One pass over the training items of every member; returns each member's mean loss."""
        spans = self.spans
        together = [self._members(span) for span in spans]
        batches = epoch_batches(together, self.sources, self.epoch, self.device)
        step = self.steps_done()
        if isinstance(self.network, VmappedNetwork):
            seeds = [members[0].classifier.seed for members in together]
            return train_mapped_epoch(
                self.network, batches, spans, seeds, self.steps, step, self.updates
            )
        total, items = torch.zeros(len(self.active), dtype=torch.float64), 0
        while chunk := list(islice(batches, CHUNK)):
            total += self._train_batches(chunk, step)
            items += sum(len(batch.inputs[0]) for batch in chunk)
            step += len(chunk)
        return total / items

    def _train_batches(self, batches: Sequence[PackBatch], step: int) -> Tensor:
        """Group after group through several batches; returns each member's loss, summed over
        items.
        """
        assert not isinstance(self.network, VmappedNetwork)
        precision = next(iter(self.network.tensors().values())).dtype
        targets = torch.cat([batch.targets for batch in batches], 1).to(precision)
        masks = [
            step_masks(
                self.network,
                self._members(span)[0].classifier.seed,
                step,
                [len(batch.inputs[number]) for batch in batches],
            )
            for number, span in enumerate(self.spans)
        ]
        losses = []
        for group in self.groups:
            self.steps.fill_(step)
            inputs = [batch.inputs[group.span] for batch in batches]
            losses.append(
                train_group(
                    group, inputs, masks[group.span], targets[slice(*group.rows)], self.steps
                )
            )
        return torch.cat(losses)

    @torch.no_grad()
    def _evaluate(self) -> list[dict[str, float]]:
        """Each active member's mean scores on its validation items, and what its followers make of
        the epoch.
        """
        rows = []
        for span in self.spans:
            members = self._members(span)
            evaluation = SpanEvaluation(
                self.sources[id(members[0].data)], partial(self._predictions, span)
            )
            rows += [
                member.columns(
                    self.epoch,
                    partial(evaluation.predictions, row),
                    partial(evaluation.scores, row),
                )
                for row, member in enumerate(members)
            ]
        return rows

    def _predictions(self, span: Span, inputs: Tensor) -> Tensor:
        """What a span's members say about some items, [m, N, K]."""
        network, whole = self.network.part(span), [_alone(span)]
        parts = inputs.split(IMAGES if network.convolutional else ITEMS)
        return torch.cat([network([part], whole).double().softmax(-1) for part in parts], 1)

    def member_state(self, row: int) -> dict[str, Tensor]:
        """An ordinary state dict of the active member at this row."""
        stacked = {**self.network.tensors(), **self.network.buffers()}
        own = read_from_device(*(tensor.detach()[row].clone() for tensor in stacked.values()))
        return {f"network.{name}": value for name, value in zip(stacked, own, strict=True)}

    def state_dict(self) -> dict[str, Any]:
        """Everything that the rest of the training depends on, as plain data; to be taken between
        epochs.
        """
        tensors, buffers = self.network.tensors(), self.network.buffers()
        weights = read_from_device(*(tensor.detach() for tensor in tensors.values()))
        return {
            "epoch": self.epoch,
            "active": self.active,
            "tensors": dict(zip(tensors, weights, strict=True)),
            "buffers": dict(zip(buffers, read_from_device(*buffers.values()), strict=True)),
            "moments": read_from_device(*self.moments),
            "members": [member.state_dict() for member in self.members],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there, with members that were built as those were."""
        self.epoch, self.active = state["epoch"], list(state["active"])
        for member, its_state in zip(self.members, state["members"], strict=True):
            member.load_state_dict(its_state)
        self.network.keep(torch.tensor(self.active, dtype=torch.long, device=self.device))
        with torch.no_grad():
            for name, tensor in self.network.tensors().items():
                tensor.copy_(state["tensors"][name])
        for name, tensor in self.network.buffers().items():
            tensor.copy_(state["buffers"][name])
        self.moments = [moment.to(self.device, copy=True) for moment in state["moments"]]
        if self.active:
            self._attach()

    def _drop_finished(self) -> None:
        going = [row for row, m in enumerate(self.active) if not self.members[m].finished]
        if len(going) == len(self.active):
            self._set_rates()
            return
        rows = torch.tensor(going, dtype=torch.long, device=self.device)
        self.active = [self.active[row] for row in going]
        self.network.keep(rows)
        self.moments = [moment[rows] for moment in self.moments]
        if self.active:
            self._attach()


def _alone(span: Span) -> Span:
    return Span(0, span.stop - span.start)  # its members are the first
