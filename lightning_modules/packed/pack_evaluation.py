"""What the members of a pack say of whole splits at the end of an epoch, and how good it is.

All of it is computed on the pack's device and read from there by `read_from_device`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lightning_modules.classifier import Prediction
from lightning_modules.packed.pack_member import Member
from metrics import registered


def read_from_device(*tensors: Tensor) -> list[Tensor]:
    """Tensors as the host has them. Nothing else in a pack waits for its device, and this is called
    between epochs alone.
    """
    return [tensor.cpu() for tensor in tensors]


class SplitItems(NamedTuple):
    """A split as a network is to see it, on the device; its numbers on the host."""

    inputs: Tensor
    annotator_probs: Tensor
    items: Tensor


@dataclass
class Source:
    """A datamodule that members share: its training batches, and the splits that they are looked at
    on.
    """

    loader: Any
    splits: dict[str, SplitItems]  # those of equal items are one object
    training_row: Tensor  # of each item, among the training votes; where the inputs are held
    few_votes: Tensor | None = None  # what validation is scored by, where that is not all votes

    @classmethod
    def of(cls, data: Any, splits: Sequence[str], device: torch.device) -> "Source":
        """Have these splits of a datamodule ready."""
        kept: dict[str, SplitItems] = {}
        for split in splits:
            loader = data.loader(data.rows(split), training=False)
            items = loader.sampler.items
            same = next(
                (name for name in kept if np.array_equal(data.rows(name), data.rows(split))), None
            )
            kept[split] = (
                kept[same]
                if same
                else SplitItems(
                    loader.prepare(items, 0).to(device),
                    data.annotator_probs[items].to(device),
                    items,
                )
            )
        few = data.validation_probs
        if few is not None:
            few = few[kept["val"].items].to(device)
        training, rows = data.train_dataloader(), data.training_row
        # on the device with the epoch's order, but for inputs that are read from files as needed
        if isinstance(data.corpus.inputs, Tensor) and device.type != "cpu":
            training = data.corpus.loader(training.sampler, data.seed, augment=True, device=device)
            rows = rows.to(device)
        return cls(training, kept, rows, few)


def shared_sources(members: Sequence[Member], device: torch.device) -> dict[int, Source]:
    """One source for each datamodule, by its `id`, with all splits that any follower of its members
    asks about.
    """
    data = {id(member.data): member.data for member in members}
    splits: dict[int, dict[str, None]] = {key: {"val": None} for key in data}
    for member in members:
        for follower in member.followers.values():
            splits[id(member.data)] |= dict.fromkeys(follower.splits)
    return {key: Source.of(data[key], list(wanted), device) for key, wanted in splits.items()}


class SpanEvaluation:
    """What members that see the same inputs say of their splits: each computed once, when it is
    first asked for.
    """

    def __init__(self, source: Source, predict: Callable[[Tensor], Tensor]):
        """
        Args:
            source: What they share.
            predict: From inputs [N, ...] to all members' probabilities [m, N, K].
        """
        self.source, self.predict = source, predict
        self._probs: dict[int, Tensor] = {}
        self._scores: dict[int, list[dict[str, float]]] = {}  # by the table that they are against

    def predictions(self, member: int, split: str) -> Prediction:
        """Those of one member, in the order of the split."""
        _, annotator_probs, index = self.source.splits[split]
        probs, target_probs = read_from_device(self._all_probs(split)[member], annotator_probs)
        return Prediction(probs, target_probs, index)

    def scores(self, member: int, split: str) -> dict[str, float]:
        """One member's mean scores, by names such as `kl`."""
        people = self.source.splits[split].annotator_probs
        if split == "val" and self.source.few_votes is not None:
            people = self.source.few_votes
        if id(people) not in self._scores:
            self._scores[id(people)] = mean_scores(self._all_probs(split), people)
        return self._scores[id(people)][member]

    def _all_probs(self, split: str) -> Tensor:
        items = self.source.splits[split]
        if id(items) not in self._probs:
            self._probs[id(items)] = self.predict(items.inputs)
        return self._probs[id(items)]


def mean_scores(probs: Tensor, annotator_probs: Tensor) -> list[dict[str, float]]:
    """Every epoch's scores of each member's predictions [m, N, K] against annotators [N, K]."""
    scores = [score for score in registered().values() if score.every_epoch]
    # a function that is not made for many models at once may look at numbers
    values = [
        score.of_models(
            *(
                (probs, annotator_probs)
                if score.batched
                else read_from_device(probs, annotator_probs)
            )
        )
        for score in scores
    ]
    names = [score.name for score in scores]
    table = torch.stack(read_from_device(*values), 1).tolist()
    return [dict(zip(names, row, strict=True)) for row in table]
