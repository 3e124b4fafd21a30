"""Dataset cartography (Swayamdipta et al. 2020): where an item lies by what models said of it over
epochs, within a run or over several.

A record of a run is an array [epochs, 3, items] of what `item_values` gives at the end of each
epoch. Statistics go through it epoch by epoch, so that a record on disk (a memory map) needs no
more memory than a few numbers per item.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from metrics import functional, per_item
from metrics.inputs import Values, as_tensor, distributions_of_items

TARGET, EXPECTED, CORRECT = range(3)  # the rows of a record
CORRELATED = ("confidence", "variability", "expected_confidence", "expected_variability")


class DataMap(NamedTuple):
    """Item by item, over the epochs of one run or of several."""

    # mean probability of the target class: the likeliest of the labels that the model is trained on
    confidence: np.ndarray
    # its standard deviation (divided by the number of epochs, as its authors do)
    variability: np.ndarray
    # the same of the probability that the model gives, on average, to the class that an annotator
    # chose
    expected_confidence: np.ndarray
    expected_variability: np.ndarray
    correctness: np.ndarray  # share of epochs in which the target class is predicted
    # times it was predicted correctly and wrongly an epoch later (Toneva et al. 2019); mean over
    # runs
    forgetting_events: np.ndarray
    # standard deviation over runs of their confidences; its square is the part of variability² that
    # no epoch explains
    between_runs: np.ndarray


def item_values(probs: Values, annotators: Values, target_class: Values) -> Tensor:
    """Of predictions [..., N, K]: probability of the target class [N], expected probability under
    annotators [N, K], and 1 where the target class is predicted; [3, ..., N].

    >>> people = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    >>> item_values(torch.tensor([[0.7, 0.3], [0.7, 0.3]]), people,
    ...     people.argmax(1)).float().tolist()
    [[0.69999..., 0.30000...], [0.69999..., 0.40000...], [1.0, 0.0]]
    """
    model, annotator_probs = distributions_of_items({"probs": probs, "annotators": annotators})
    target = as_tensor(target_class, "target_class").to(model.device)
    classes, items = model.shape[-1], model.shape[:-1]
    if (
        target.is_floating_point()
        or target.shape != items[len(items) - target.ndim :]
        or not ((target >= 0) & (target < classes)).all()
    ):
        raise InputError(
            f"target_class must hold whole numbers from 0 to {classes - 1}, one for each item of "
            "probs."
        )
    return per_item.map_values(model, annotator_probs, target.long())


def data_map(runs: Sequence[np.ndarray], last: int | None = None) -> DataMap:
    """The map of one record, or of those of several seeds together, over all epochs or the last
    ones of each.

    >>> # three epochs of one item
    >>> record = np.array([[[0.2], [0.2], [0]], [[0.8], [0.8], [1]], [[0.5], [0.5], [0]]])
    >>> found = data_map([record])
    >>> round(found.confidence.item(), 3), round(found.variability.item(),
    ...     3), found.forgetting_events.item()
    (0.5, 0.245, 1.0)
    """
    if last is not None and last < 1:
        raise InputError(
            f"the number of last epochs of a data map is {last}; it must be 1 or more, or null "
            "for all epochs."
        )
    lengths = {len(run) for run in runs}
    if min(lengths, default=0) < (last or 1):
        raise InputError(
            f"a record holds {min(lengths, default=0)} epoch(s); a data map of the last "
            f"{last or 1} needs as many."
        )
    if last is None and len(lengths) > 1:
        raise InputError(
            f"runs of {sorted(lengths)} epochs have no common map of all epochs; ask for the last "
            "ones of each."
        )
    windows = [run[-last:] if last else run for run in runs]
    rows = [epoch for window in windows for epoch in window]
    confidence, variability = _mean_and_deviation(rows, TARGET)
    expected_confidence, expected_variability = _mean_and_deviation(rows, EXPECTED)
    of_runs = [_sum(epoch[TARGET] for epoch in window) / len(window) for window in windows]
    forgotten = _sum(
        before[CORRECT] > after[CORRECT] for window in windows for before, after in pairwise(window)
    )
    return DataMap(
        confidence,
        variability,
        expected_confidence,
        expected_variability,
        correctness=_sum(epoch[CORRECT] for epoch in rows) / len(rows),
        forgetting_events=np.broadcast_to(forgotten / len(windows), confidence.shape),
        between_runs=np.sqrt(_sum((mean - confidence) ** 2 for mean in of_runs) / len(windows)),
    )


def map_across_runs(
    items: Sequence[np.ndarray], runs: Sequence[np.ndarray], last: int | None = None
) -> tuple[np.ndarray, DataMap]:
    """The items that all runs have, and their common map; `items` holds the item numbers of each
    record, in ascending order.

    >>> one, other = (np.full((2, 3, 2), value) for value in (0.25, 0.75))
    >>> common, found = map_across_runs([np.array([3, 5]), np.array([5, 8])], [one, other])
    >>> common.tolist(), found.confidence.tolist(), found.between_runs.tolist()
    ([5], [0.5], [0.25])
    """
    common = items[0]
    for other in items[1:]:
        common = np.intersect1d(common, other, assume_unique=True)
    if not len(common):
        raise InputError(
            f"the {len(items)} runs of a data map have no item in common; across seeds it needs a "
            "split that is the same for all."
        )
    windows = [run[-last if last else 0 :] for run in runs]
    # only records of other items are copied
    parts = [
        window if len(own) == len(common) else window[:, :, np.searchsorted(own, common)]
        for own, window in zip(items, windows, strict=True)
    ]
    return common, data_map(parts, last)


def uncertainty_correlations(result: DataMap, uncertainty: np.ndarray) -> dict[str, float]:
    """Spearman's correlation over items between human uncertainty and each coordinate of the map;
    NaN where either is the same for all items.
    """
    annotator_probs = torch.from_numpy(np.asarray(uncertainty, dtype=np.float64))
    values = {name: torch.from_numpy(getattr(result, name)) for name in CORRELATED}
    return {
        f"{name}_spearman": functional.correlation(value, annotator_probs, "spearman").item()
        for name, value in values.items()
    }


def _mean_and_deviation(epochs: Sequence[np.ndarray], row: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean first, then deviations from it: sums of squares would lose the small variability of an
    item that is always certain.
    """
    mean = _sum(epoch[row] for epoch in epochs) / len(epochs)
    return mean, np.sqrt(_sum((epoch[row] - mean) ** 2 for epoch in epochs) / len(epochs))


def _sum(values: Iterable[np.ndarray]) -> np.ndarray:
    total = np.zeros(())
    for value in values:
        total = total + value.astype(np.float64)
    return total
