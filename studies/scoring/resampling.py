"""How much a score would change with other items: the bootstrap over items, each with its votes.

An item is drawn together with the votes that it has, so what is random about either is in the
spread. All tables are resampled alike, so that differences between them are those of the same
items.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from core.randomness import generator
from metrics.registry import Score, by_function, values_of

MEANS = 1000  # resamples of scores that are means over items: one matrix product
OTHERS = 100  # of the others, whose functions are called for each
# Items of such a resample: of more items a sample of these is drawn, and its spread is scaled by
# the root of the sizes' ratio (the m out of n bootstrap of Bickel, Götze and van Zwet 1997).
AT_MOST = 2000
BLOCK = 1 << 22  # numbers that are held at once
TAILS = (0.025, 0.975)


@dataclass(frozen=True)
class Spread:
    """What a score becomes in resamples."""

    values: np.ndarray  # [resamples]
    scale: float  # of their deviations: below 1 where resamples have fewer items than there are

    def interval(self, around: float) -> tuple[float, float]:
        """95 % of the deviations from their mean, around what was found with all items.

        Around the score itself, because resamples of a calibration error lie above it on average.
        NaN where the score is not defined in some resamples.

        >>> low, high = Spread(np.linspace(-1, 1, 201), scale=1.0).interval(around=5.0)
        >>> round(low, 3), round(high, 3)
        (4.05, 5.95)
        """
        low, high = np.quantile(self.values, TAILS) - self.values.mean()
        return float(around + self.scale * low), float(around + self.scale * high)

    def p_value(self, found: float) -> float:
        """Two-sided, that what was found is 0, by the normal distribution with this spread."""
        deviation = self.scale * float(self.values.std(ddof=1))
        if deviation == 0:
            return 1.0 if found == 0 else 0.0
        return float(2 * ndtr(-abs(found) / deviation))


def spreads(
    tables: Sequence[np.ndarray], people: np.ndarray, scores: Sequence[Score], seed: int
) -> list[dict[str, Spread]]:
    """The spread of each score, by name, for each of several tables of predictions [N, K]."""
    means = [score for score in scores if score.per_item]
    others = [score for score in scores if not score.per_item]
    model, annotators = [torch.from_numpy(table) for table in tables], torch.from_numpy(people)
    return [
        of_means | of_others
        for of_means, of_others in zip(
            _of_means(model, annotators, means, seed),
            _of_others(model, annotators, others, seed),
            strict=True,
        )
    ]


def _of_means(
    tables: Sequence[Tensor], people: Tensor, scores: Sequence[Score], seed: int
) -> list[dict[str, Spread]]:
    items = len(people)
    if not scores:
        return [{} for _ in tables]
    columns = [score.items(table, people).double() for table in tables for score in scores]
    values, rng = torch.stack(columns, 1).numpy(), generator(seed, "resampled means")
    step = max(1, BLOCK // items)
    drawn = np.concatenate(
        [
            _times(rng, min(step, MEANS - start), items) @ values / items
            for start in range(0, MEANS, step)
        ]
    ).reshape(MEANS, len(tables), len(scores))
    return [
        {score.name: Spread(drawn[:, table, place], 1.0) for place, score in enumerate(scores)}
        for table in range(len(tables))
    ]


def _times(rng: np.random.Generator, resamples: int, items: int) -> np.ndarray:
    """How often each item is drawn in each resample [resamples, items]."""
    drawn = rng.integers(items, size=(resamples, items)) + items * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * items).reshape(-1, items).astype(float)


def _of_others(
    tables: Sequence[Tensor], people: Tensor, scores: Sequence[Score], seed: int
) -> list[dict[str, Spread]]:
    size, rng = min(len(people), AT_MOST), generator(seed, "resampled scores")
    found: list[list[dict[str, Tensor]]] = [[] for _ in tables]
    for _ in range(OTHERS if scores else 0):
        rows = torch.from_numpy(rng.integers(len(people), size=size))
        for table, values in zip(tables, found, strict=True):
            of_resample: dict[str, Tensor] = {}
            for group in by_function(scores):
                of_resample |= values_of(group, table[rows], people[rows])
            values.append(of_resample)
    scale = float(np.sqrt(size / len(people)))
    return [
        {
            score.name: Spread(np.array([float(each[score.name]) for each in values]), scale)
            for score in scores
        }
        for values in found
    ]
