"""Held-out items in two roles: those that something is fitted to, and those that it is judged on.

No item ever has both.
"""

from dataclasses import dataclass

import numpy as np
import torch

from core.errors import InputError
from core.randomness import generator
from core.ranks import gather_over_ranks
from datamodules import VoteDataModule
from lightning_modules import AnnotatorClassifier


@dataclass(frozen=True)
class Part:
    """Row numbers of a table, in order."""

    fitted: np.ndarray
    judged: np.ndarray


def held_out_parts(data: VoteDataModule) -> list[Part]:
    """Validation items are fitted to and test items judged; where both are the same items, as in
    CIFAR10H, they are cut into halves, and each is judged by what was fitted to the other.
    """
    val, test = np.sort(data.rows("val")), np.sort(data.rows("test"))
    own = np.setdiff1d(val, test)
    if len(own):
        return [Part(own, test)]
    if len(test) < 2:
        raise InputError(
            f"{data.name} has a single held-out item, which cannot be fitted to and judged at once."
        )
    shuffled = generator(data.seed, "held-out halves").permutation(test)
    one, other = (np.sort(half) for half in np.array_split(shuffled, 2))
    return [Part(one, other), Part(other, one)]


def halves_in_words(parts: list[Part], who: str) -> list[str]:
    """A note where items had to be cut into halves."""
    if len(parts) == 1:
        return []
    return [
        f"{who}: the validation items are the test items, so these were cut into halves, and each "
        "is judged by what was fitted to the other."
    ]


class HeldOutLogits:
    """A classifier's logits of all items of these parts, computed once."""

    def __init__(self, classifier: AnnotatorClassifier, data: VoteDataModule, parts: list[Part]):
        rows = np.unique(
            np.concatenate([rows for part in parts for rows in (part.fitted, part.judged)])
        )
        logits, index = [], []
        with torch.no_grad():
            for batch in data.evaluation_batches(rows, classifier.device):
                logits.append(classifier.logits(batch.inputs).cpu())
                index.append(batch.index.cpu())
        index = gather_over_ranks(torch.cat(index)).numpy()
        order = index.argsort()
        self._rows = index[order]
        self._logits = gather_over_ranks(torch.cat(logits)).numpy()[order]

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Those of some items [n, K], in double precision."""
        return self._logits[np.searchsorted(self._rows, rows)]
