"""How much a score would change with other items: the bootstrap over items, each with its votes.

An item is drawn together with the votes that it has, so what is random about either is in the
spread. All tables are resampled alike, so that differences between them are those of the same
items.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import stdtr, stdtrit
from torch import Tensor

from core.randomness import generator
from metrics.registry import Score, by_function, values_of

MEANS = 1000  # resamples of scores that are means over items: one matrix product
OTHERS = 20  # of the others, whose functions are called for each
# Items of such a resample: of more items a sample of these is drawn, and its spread is scaled by
# the root of the sizes' ratio (the m out of n bootstrap of Bickel, Götze and van Zwet 1997).
AT_MOST = 2000
FEW = 200  # resamples, of which the outermost say less than their standard deviation
BLOCK = 1 << 22  # numbers that are held at once
TAILS = (0.025, 0.975)

Asked = tuple[np.ndarray, Sequence[Score]]  # predictions [N, K], and what is asked of them


@dataclass(frozen=True)
class Spread:
    """What a score becomes in resamples."""

    values: np.ndarray  # [resamples]
    scale: float  # of their deviations: below 1 where resamples have fewer items than there are

    @property
    def error(self) -> float:
        """The standard error of the score."""
        return self.scale * float(self.values.std(ddof=1))

    def interval(self, around: float) -> tuple[float, float]:
        """95 % of the deviations from their mean, around what was found with all items; of few
        resamples, Student's interval with their standard deviation.

        Around the score itself, because resamples of a calibration error lie above it on average.
        NaN where the score is not defined in some resamples.

        >>> low, high = Spread(np.linspace(-1, 1, 201), scale=1.0).interval(around=5.0)
        >>> round(low, 3), round(high, 3)
        (4.05, 5.95)
        """
        if len(self.values) < FEW:
            low, high = stdtrit(len(self.values) - 1, TAILS) * self.error
        else:
            low, high = self.scale * (np.quantile(self.values, TAILS) - self.values.mean())
        return around + float(low), around + float(high)

    def p_value(self, found: float) -> float:
        """Two-sided, that what was found is 0, by Student's distribution with this spread."""
        if self.error == 0:
            return 1.0 if found == 0 else 0.0
        return float(2 * stdtr(len(self.values) - 1, -abs(found) / self.error))


def spreads(asked: Sequence[Asked], people: np.ndarray, seed: int) -> list[dict[str, Spread]]:
    """The spread of each table's scores, by name; `people` are the annotators' distributions."""
    annotators = torch.from_numpy(people)
    tables = [torch.from_numpy(table) for table, _ in asked]
    means, others = (
        [
            (table, [score for score in scores if score.per_item == are_means])
            for table, (_, scores) in zip(tables, asked, strict=True)
        ]
        for are_means in (True, False)
    )
    both = (_of_means(means, annotators, seed), _of_others(others, annotators, seed))
    return [of_means | of_others for of_means, of_others in zip(*both, strict=True)]


def _of_means(
    asked: Sequence[tuple[Tensor, list[Score]]], people: Tensor, seed: int
) -> list[dict[str, Spread]]:
    items, rng = len(people), generator(seed, "resampled means")
    columns = [score.items(table, people).double() for table, scores in asked for score in scores]
    if not columns:
        return [{} for _ in asked]
    values, step = torch.stack(columns, 1).numpy(), max(1, BLOCK // items)
    starts = range(0, MEANS, step)
    drawn = np.concatenate(
        [_times(rng, min(step, MEANS - start), items) @ values / items for start in starts]
    )
    column = iter(drawn.T)
    return [{score.name: Spread(next(column), 1.0) for score in scores} for _, scores in asked]


def _times(rng: np.random.Generator, resamples: int, items: int) -> np.ndarray:
    """How often each item is drawn in each resample [resamples, items]."""
    drawn = rng.integers(items, size=(resamples, items)) + items * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * items).reshape(-1, items).astype(float)


def _of_others(
    asked: Sequence[tuple[Tensor, list[Score]]], people: Tensor, seed: int
) -> list[dict[str, Spread]]:
    size, rng = min(len(people), AT_MOST), generator(seed, "resampled scores")
    found: list[dict[str, list[float]]] = [{s.name: [] for s in scores} for _, scores in asked]
    for _ in range(OTHERS if any(found) else 0):
        rows = torch.from_numpy(rng.integers(len(people), size=size))
        for (table, scores), values in zip(asked, found, strict=True):
            for group in by_function(scores):
                for name, value in values_of(group, table[rows], people[rows]).items():
                    values[name].append(float(value))
    scale = float(np.sqrt(size / len(people)))
    return [
        {name: Spread(np.array(values), scale) for name, values in of_table.items()}
        for of_table in found
    ]
