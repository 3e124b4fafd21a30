"""Splits that keep the share of every stratum, as a function of the seed alone."""

from collections.abc import Sequence

import numpy as np

from errors import InputError
from randomness import generator


def stratified_split(strata: np.ndarray, fractions: Sequence[float], seed: int) -> list[np.ndarray]:
    """Cut items into parts of exact total size that each hold their share of every stratum.

    Each stratum is shuffled and its members are spread evenly over [0, 1); cutting that line at the cumulative fractions
    gives parts whose totals are exact and in which every stratum has its share to within one item at each cut.

    >>> train, test = stratified_split(np.array([0] * 8 + [1] * 2), [0.5, 0.5], seed=0)
    >>> len(train), len(test), sorted(np.concatenate([train, test]).tolist()) == list(range(10))
    (5, 5, True)
    """
    strata = np.asarray(strata)
    if not fractions or not all(fraction > 0 for fraction in fractions) or abs(sum(fractions) - 1) > 1e-9:
        raise InputError(f"the split fractions are {list(fractions)}; each must be above 0 and they must sum to 1.")
    total = len(strata)
    rng = generator(seed, "split")
    shuffled = rng.permutation(total)
    by_stratum = shuffled[np.argsort(strata[shuffled], kind="stable")]
    _, first, size = np.unique(strata[by_stratum], return_index=True, return_counts=True)
    rank = np.arange(total) - np.repeat(first, size)
    position = (rank + 0.5) / np.repeat(size, size)
    # equal positions of different strata are ordered by chance, else the low classes would always land in the first part
    line = by_stratum[np.lexsort((rng.random(total), position))]
    cuts = np.rint(np.cumsum(fractions)[:-1] * total).astype(int)
    parts = [np.sort(part) for part in np.split(line, cuts)]
    if any(len(part) == 0 for part in parts):
        raise InputError(f"splitting {total} items by {list(fractions)} leaves a part empty; use larger fractions or more items.")
    return parts
