"""Many independent classifiers trained as one: seeds, deliveries, learning rates, schedules and
early stopping per member.

A member is an ordinary `AnnotatorClassifier` with its datamodule. It starts from the weights, sees
the batches and targets and follows the optimizer, schedule and stopping rule that it would have had
alone; only the arithmetic is shared. Lightning's Trainer is left out on purpose: its own cost per
step is of the size of a whole packed step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from core.randomness import generator
from lightning_modules.packed.pack_member import Member
from lightning_modules.packed.packed_network import PackedNetwork
from lightning_modules.packed.stacked_linear import Span
from metrics import per_item

ITEMS = 512  # of one evaluation pass: all of them would need much memory
IMAGES = (
    128  # the same for convolutions: what they compute of these is to stay in the processor's cache
)
# batches that are prepared at once: enough to make Python's share small, few enough to keep memory
# flat
CHUNK = 64


@dataclass
class Source:
    """A datamodule that members share: its training batches, and the splits that they are scored
    on.
    """

    loader: Any
    splits: dict[str, tuple[Tensor, Tensor]]  # inputs and annotator distributions

    @classmethod
    def of(cls, data: Any, splits: Sequence[str]) -> "Source":
        kept: dict[str, tuple[Tensor, Tensor]] = {}
        for split in splits:
            loader = data.loader(data.rows(split), training=False)
            items = loader.sampler.items
            same = next(
                (name for name in kept if np.array_equal(data.rows(name), data.rows(split))), None
            )
            kept[split] = (
                kept[same] if same else (loader.prepare(items, 0), data.annotator_probs[items])
            )
        return cls(data.train_dataloader(), kept)


class PackedClassifier:
    """Trains members of equal shape at once.

    Members that share a datamodule are to follow one another in the list.

    `fit` goes on until every member has finished; `after_epoch(pack)` is called after each epoch,
    to report progress and save state.
    """

    def __init__(self, members: Sequence[Member]):
        self.members = list(members)
        self.active = list(range(len(self.members)))
        self.epoch = 0
        self.network = PackedNetwork([member.classifier.network for member in self.members])
        self.moments = [
            torch.zeros_like(tensor) for _ in range(2) for tensor in self.network.tensors().values()
        ]
        self._prepare_data()
        self._attach()

    def _prepare_data(self) -> None:
        """One source for each datamodule that members share, with all splits that any of them is
        scored or watched on.
        """
        splits: dict[int, dict[str, None]] = {}
        for member in self.members:
            splits.setdefault(id(member.data), {"val": None}).update(
                dict.fromkeys((*member.scored, *member.watched))
            )
        data = {id(member.data): member.data for member in self.members}
        self.sources = {key: Source.of(data[key], list(wanted)) for key, wanted in splits.items()}

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

    def steps_done(self) -> int:
        return self.epoch * len(next(iter(self.sources.values())).loader)

    def _set_rates(self) -> None:
        """Members of equal options form one group, so that a step is few calls however many members
        there are.
        """
        groups: dict[tuple[float, float], list[list[Tensor]]] = {}
        for m, columns in zip(self.active, self.slices, strict=True):
            key = (self.members[m].rate, self.members[m].optimizer.param_groups[0]["weight_decay"])
            for together, own in zip(
                groups.setdefault(key, [[], [], [], []]), columns, strict=True
            ):
                together.extend(own)
        kernel = _kernel(self.members[0].optimizer)
        self.steps = torch.tensor(float(self.steps_done()))
        self.updates = [
            partial(kernel, *columns, self.steps, lr=rate, weight_decay=decay)
            for (rate, decay), columns in groups.items()
        ]

    @property
    def spans(self) -> list[Span]:
        """Runs of active members that see the same inputs: those that share a datamodule, but for
        one whose delivery blends its inputs.
        """
        spans: list[Span] = []
        owner = None
        for row, m in enumerate(self.active):
            member = self.members[m]
            sees = (id(member.data), m if member.bound.blends else None)
            if sees == owner:
                spans[-1] = Span(spans[-1].start, row + 1)
            else:
                spans.append(Span(row, row + 1))
                owner = sees
        return spans

    def fit(self, after_epoch: Callable[["PackedClassifier"], None] = lambda pack: None) -> None:
        while self.active:
            losses = self._train_epoch()
            scores = self._evaluate()
            self.epoch += 1
            for row, m in enumerate(self.active):
                self.members[m].end_epoch(
                    {"train/loss": losses[row].item(), **scores[row]},
                    lambda row=row: self.member_state(row),
                )
            self._drop_finished()
            after_epoch(self)

    def _train_epoch(self) -> Tensor:
        """One pass over the training items of every member; returns each member's mean loss."""
        spans = self.spans
        owners = [self.members[self.active[span.start]].data for span in spans]
        targets = [self._epoch_targets(span) for span in spans]
        order = {}  # of each datamodule, its batches
        for data in owners:
            sampler = self.sources[id(data)].loader.sampler
            sampler.set_epoch(self.epoch)
            order[id(data)] = order.get(id(data)) or list(sampler)
        total, items = torch.zeros(len(self.active), dtype=torch.float64), 0
        steps = len(next(iter(order.values())))
        for start in range(0, steps, CHUNK):
            chunk = {owner: batches[start : start + CHUNK] for owner, batches in order.items()}
            sizes = [len(index) for index in next(iter(chunk.values()))]
            seen = {
                owner: self.sources[owner].loader.prepare(torch.cat(index), self.epoch).split(sizes)
                for owner, index in chunk.items()
            }
            prepared = [
                self._batches(
                    span,
                    seen[id(data)],
                    table,
                    data.training_row[torch.cat(chunk[id(data)])],
                    sizes,
                )
                for span, data, table in zip(spans, owners, targets, strict=True)
            ]
            for number, size in enumerate(sizes):
                inputs, wanted = zip(*(part[number] for part in prepared), strict=True)
                loss = self._step(
                    inputs, torch.cat(wanted), spans, self.epoch * steps + start + number
                )
                total += loss.double() * size
                items += size
        return total / items

    def _batches(
        self, span: Span, inputs: Sequence[Tensor], table: Tensor, rows: Tensor, sizes: list[int]
    ) -> list[tuple[Tensor, Tensor]]:
        """A span's inputs and targets [members, B, K] of several batches, blended where its one
        member asks for it.
        """
        bound = self.members[self.active[span.start]].bound
        targets = table[:, rows].split(sizes, 1)
        if not bound.blends:
            return list(zip(inputs, targets, strict=True))
        blended = [
            bound.blend(seen, wanted[0], its_rows, self.epoch)
            for seen, wanted, its_rows in zip(inputs, targets, rows.split(sizes), strict=True)
        ]
        return [(seen, wanted[None]) for seen, wanted in blended]

    def _epoch_targets(self, span: Span) -> Tensor:
        """The span's targets of this epoch as distributions [m, N, K]."""
        members = [self.members[m] for m in self.active[span.start : span.stop]]
        classes = members[0].data.num_classes
        tables = [member.bound.targets(self.epoch) for member in members]
        return torch.stack(
            [t if t.is_floating_point() else F.one_hot(t, classes).float() for t in tables]
        )

    def _step(
        self, inputs: Sequence[Tensor], targets: Tensor, spans: Sequence[Span], step: int
    ) -> Tensor:
        leaders = [self.members[self.active[span.start]] for span in spans]
        seeds = [
            int(generator(leader.classifier.seed, "dropout", step, 0).integers(2**63))
            for leader in leaders
        ]
        if (
            self.network.convolutional
        ):  # span by span, forward and backward, for the processor's cache
            parts = zip(spans, inputs, seeds, strict=True)
            result = [
                _differentiate(
                    self.network.part(span), [seen], targets[slice(*span)], [_alone(span)], [seed]
                )
                for span, seen, seed in parts
            ]
            losses = torch.cat(result)
        else:
            losses = _differentiate(self.network, inputs, targets, spans, seeds)
        self.steps += 1
        for update in self.updates:
            update()
        return losses

    @torch.no_grad()
    def _evaluate(self) -> list[dict[str, float]]:
        """Each active member's mean scores on its validation items and on the other splits that it
        asks for, and how far its predictions moved.
        """
        rows = []
        for span in self.spans:
            members = [self.members[m] for m in self.active[span.start : span.stop]]
            source = self.sources[id(members[0].data)]
            scored = dict.fromkeys(
                ["val", *(split for member in members for split in member.scored)]
            )
            probs: dict[str, Tensor] = {}  # of each split, [members, N, K]
            scores: dict[str, list[dict[str, float]]] = {}
            for split in dict.fromkeys(
                [*scored, *(split for member in members for split in member.watched)]
            ):
                inputs, annotator_probs = source.splits[split]
                same = next(
                    (name for name in probs if source.splits[name] is source.splits[split]), None
                )
                probs[split] = probs[same] if same else self._predictions(span, inputs)
                if split in scored:
                    scores[split] = (
                        scores[same] if same else mean_scores(probs[split], annotator_probs)
                    )
            for row, member in enumerate(members):
                asked = ("val", *member.scored)
                mine = {
                    f"{split}/{name}": value
                    for split in asked
                    for name, value in scores[split][row].items()
                }
                rows.append({**mine, **member.drift(probs["val"][row])})
                for split, note in member.watched.items():
                    note(self.epoch, probs[split][row])
        return rows

    def _predictions(self, span: Span, inputs: Tensor) -> Tensor:
        """What a span's members say about some items, [m, N, K]."""
        network, whole = self.network.part(span), [_alone(span)]
        parts = inputs.split(IMAGES if network.convolutional else ITEMS)
        return torch.cat([network([part], whole).double().softmax(-1) for part in parts], 1)

    def member_state(self, row: int) -> dict[str, Tensor]:
        """An ordinary state dict of the active member at this row."""
        return {
            f"network.{name}": tensor.detach()[row].clone()
            for name, tensor in self.network.tensors().items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything that the rest of the training depends on, as plain data; to be taken between
        epochs.
        """
        return {
            "epoch": self.epoch,
            "active": self.active,
            "tensors": {name: tensor.detach() for name, tensor in self.network.tensors().items()},
            "moments": self.moments,
            "members": [member.state_dict() for member in self.members],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.active = state["epoch"], list(state["active"])
        for member, its_state in zip(self.members, state["members"], strict=True):
            member.load_state_dict(its_state)
        self.network.keep(torch.tensor(self.active, dtype=torch.long))
        with torch.no_grad():
            for name, tensor in self.network.tensors().items():
                tensor.copy_(state["tensors"][name])
        self.moments = [moment.clone() for moment in state["moments"]]
        if self.active:
            self._attach()

    def _drop_finished(self) -> None:
        going = [row for row, m in enumerate(self.active) if not self.members[m].finished]
        if len(going) == len(self.active):
            self._set_rates()
            return
        rows = torch.tensor(going, dtype=torch.long)
        self.active = [self.active[row] for row in going]
        self.network.keep(rows)
        self.moments = [moment[rows] for moment in self.moments]
        if self.active:
            self._attach()


def _differentiate(
    network: PackedNetwork,
    inputs: Sequence[Tensor],
    targets: Tensor,
    spans: Sequence[Span],
    seeds: Sequence[int],
) -> Tensor:
    """Each member's loss; the gradients go to the network's buffers."""
    losses = -(targets * network(inputs, spans, seeds).log_softmax(-1)).sum(-1).mean(-1)
    # a member's loss depends on its own weights alone, so the gradients do not mix
    losses.sum().backward()
    return losses.detach()


def _alone(span: Span) -> Span:
    """A span by itself: its members are the first."""
    return Span(0, span.stop - span.start)


SCORES = {
    "soft_nll": per_item.nll,
    "hard_nll": per_item.hard_nll,
    "kl": per_item.kl,
    "soft_brier": per_item.brier,
    "accuracy": per_item.hit,
}


def mean_scores(probs: Tensor, annotator_probs: Tensor) -> list[dict[str, float]]:
    """The mean scores of each member's predictions [m, N, K] against annotators [N, K]."""
    table = torch.stack([score(probs, annotator_probs).mean(-1) for score in SCORES.values()], 1)
    return [dict(zip(SCORES, values, strict=True)) for values in table.tolist()]


def _kernel(optimizer: torch.optim.Optimizer) -> Callable[..., None]:
    """The fused kernel of torch's optimizer, called with lists of tensors: its own bookkeeping
    would cost as much as a whole step.
    """
    options = optimizer.param_groups[0]
    if isinstance(optimizer, torch.optim.SGD):
        rest = {key: options[key] for key in ("momentum", "dampening", "nesterov", "maximize")}
        return lambda weights, gradients, one, two, steps, **own: torch._fused_sgd_(  # pyright: ignore[reportPrivateImportUsage]
            weights, gradients, one if rest["momentum"] else [], is_first_step=False, **rest, **own
        )
    kernel = torch._fused_adamw_ if options.get("decoupled_weight_decay") else torch._fused_adam_  # pyright: ignore[reportPrivateImportUsage]
    rest = {
        "beta1": options["betas"][0],
        "beta2": options["betas"][1],
        **{key: options[key] for key in ("eps", "amsgrad", "maximize")},
    }
    return lambda weights, gradients, one, two, steps, **own: kernel(
        weights, gradients, one, two, [], [steps] * len(weights), **rest, **own
    )
