"""What the members of a pack say of whole splits at the end of an epoch, and how good it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lightning_modules.classifier import Prediction
from lightning_modules.packed.pack_member import Member
from metrics import registered


class SplitItems(NamedTuple):
    """A split as a network is to see it."""

    inputs: Tensor
    annotator_probs: Tensor
    items: Tensor  # their numbers


@dataclass
class Source:
    """A datamodule that members share: its training batches, and the splits that they are looked at
    on.
    """

    loader: Any
    splits: dict[str, SplitItems]  # those of equal items are one object

    @classmethod
    def of(cls, data: Any, splits: Sequence[str]) -> "Source":
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
                else SplitItems(loader.prepare(items, 0), data.annotator_probs[items], items)
            )
        return cls(data.train_dataloader(), kept)


def shared_sources(members: Sequence[Member]) -> dict[int, Source]:
    """One source for each datamodule, by its `id`, with all splits that any follower of its members
    asks about.
    """
    data = {id(member.data): member.data for member in members}
    splits: dict[int, dict[str, None]] = {key: {"val": None} for key in data}
    for member in members:
        for follower in member.followers.values():
            splits[id(member.data)] |= dict.fromkeys(follower.splits)
    return {key: Source.of(data[key], list(wanted)) for key, wanted in splits.items()}


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
        self._scores: dict[int, list[dict[str, float]]] = {}

    def predictions(self, member: int, split: str) -> Prediction:
        """Those of one member, in the order of the split."""
        _, annotator_probs, index = self.source.splits[split]
        return Prediction(self._all_probs(split)[member], annotator_probs, index)

    def scores(self, member: int, split: str) -> dict[str, float]:
        """One member's mean scores, by names such as `kl`."""
        items = self.source.splits[split]
        if id(items) not in self._scores:
            self._scores[id(items)] = mean_scores(self._all_probs(split), items.annotator_probs)
        return self._scores[id(items)][member]

    def _all_probs(self, split: str) -> Tensor:
        items = self.source.splits[split]
        if id(items) not in self._probs:
            self._probs[id(items)] = self.predict(items.inputs)
        return self._probs[id(items)]


def mean_scores(probs: Tensor, annotator_probs: Tensor) -> list[dict[str, float]]:
    """Every epoch's scores of each member's predictions [m, N, K] against annotators [N, K]."""
    scores = [score for score in registered().values() if score.every_epoch]
    table = torch.stack([score.of_models(probs, annotator_probs) for score in scores], 1)
    names = [score.name for score in scores]
    return [dict(zip(names, values, strict=True)) for values in table.tolist()]
