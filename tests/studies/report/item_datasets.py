"""Two small datasets that can show their items to people: the digits as pictures, and as texts
about them over three classes. SIMULATED annotators.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from datamodules import Digits
from datamodules.datasets.digits import blended_digits
from datamodules.vote_datamodule import Corpus
from datamodules.votes.table import VoteTable


class Pictures(Digits):
    class_names = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

    def original(self, rows: Sequence[int] | np.ndarray) -> list[str] | Tensor:
        images = torch.from_numpy(blended_digits(self.crowd_seed)[0])[torch.as_tensor(rows)]
        return (images * 255 / 16).to(torch.uint8)[:, None].expand(-1, 3, -1, -1)


class Texts(Digits):
    """Every item has one vote more than the one before, from 3 to 12 and again from 3 on."""

    num_classes = 3
    class_names = ("low", "middle", "high")

    def original(self, rows: Sequence[int] | np.ndarray) -> list[str] | Tensor:
        return [
            f"Premise: item {row} costs $5 and not $6, as was said.\nHypothesis: it is cheap 🙂. "
            f"{'Very long. ' * int(row % 60)}"
            for row in rows
        ]

    def load(self) -> Corpus:
        corpus = super().load()
        most = np.arange(len(corpus.votes)) % 10 + 3
        first = (corpus.votes.majority % 3) * most // 4
        counts = np.stack([first, (most - first) // 2, most - first - (most - first) // 2], axis=1)
        return replace(corpus, votes=VoteTable(counts))
