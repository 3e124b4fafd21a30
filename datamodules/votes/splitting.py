"""Splits that keep the share of every stratum, as a function of the seed alone."""

from collections.abc import Sequence

import numpy as np

from core.errors import InputError
from core.randomness import generator


def stratified_split(strata: np.ndarray, fractions: Sequence[float], seed: int) -> list[np.ndarray]:
    """Cut items into parts of exact total size that each hold their share of every stratum.

    Parts are cut off one after the other. A part's share of each stratum is rounded down, and the
    items still owed to it come one each from the strata with the largest remainders (equal ones by
    chance): every stratum is within one item of its share of what was left to cut.

    >>> train, test = stratified_split(np.array([0] * 8 + [1] * 2), [0.5, 0.5], seed=0)
    >>> len(train), len(test), sorted(np.concatenate([train, test]).tolist()) == list(range(10))
    (5, 5, True)
    """
    positive = bool(fractions) and all(fraction > 0 for fraction in fractions)
    if not positive or abs(sum(fractions) - 1) > 1e-9:
        raise InputError(
            f"the split fractions are {list(fractions)}; each must be above 0 and they must sum "
            "to 1."
        )
    rng = generator(seed, "split")
    _, stratum, size = np.unique(np.asarray(strata), return_inverse=True, return_counts=True)
    shuffled = rng.permutation(len(stratum))
    by_stratum = shuffled[np.argsort(stratum[shuffled], kind="stable")]
    rank = np.arange(len(stratum)) - np.repeat(np.cumsum(size) - size, size)  # within the stratum
    cuts = np.rint(np.cumsum(fractions) * len(stratum)).astype(int)
    part_of, taken = np.full(len(stratum), len(fractions) - 1), np.zeros_like(size)
    for part, total in enumerate(np.diff(cuts, prepend=0)[:-1]):
        share = (size - taken) * total / max((size - taken).sum(), 1)
        owed = np.floor(share + 1e-9).astype(int)
        owed[np.lexsort((rng.random(len(size)), owed - share))[: total - owed.sum()]] += 1
        part_of[(rank >= np.repeat(taken, size)) & (rank < np.repeat(taken + owed, size))] = part
        taken = taken + owed
    parts = [np.sort(by_stratum[part_of == part]) for part in range(len(fractions))]
    if any(len(part) == 0 for part in parts):
        raise InputError(
            f"splitting {len(stratum)} items by {list(fractions)} leaves a part empty; use larger "
            "fractions or more items."
        )
    return parts


def stratified_order(strata: np.ndarray, seed: int) -> np.ndarray:
    """All items in an order of which every beginning holds its share of every stratum.

    Each stratum is shuffled, and its items are spread evenly from a random start: of the first n of
    N items, about n / N of every stratum are among them.

    >>> order = stratified_order(np.array([0] * 8 + [1] * 4), seed=0)
    >>> [int((order[:n] < 8).sum()) for n in (3, 6, 12)]
    [2, 4, 8]
    """
    rng = generator(seed, "stratified-order")
    _, stratum, size = np.unique(np.asarray(strata), return_inverse=True, return_counts=True)
    shuffled = rng.permutation(len(stratum))
    by_stratum = shuffled[np.argsort(stratum[shuffled], kind="stable")]
    rank = np.arange(len(stratum)) - np.repeat(np.cumsum(size) - size, size)  # within the stratum
    place = (rank + np.repeat(rng.random(len(size)), size)) / np.repeat(size, size)
    return by_stratum[np.argsort(place, kind="stable")]
