"""Which items of a source make the corpus: evenly by digit and difficulty, with enough easy ones,
and split so that every part has its share of each.
"""

import math
from typing import NamedTuple

import numpy as np

from core.errors import InputError
from core.randomness import generator
from corpora.difficulty import NONE, REGIONS
from datamodules.io.mnist import DIGITS
from datamodules.votes.splitting import stratified_split

EASY = REGIONS.index("easy")


class Selection(NamedTuple):
    """The chosen rows of a source, in order, and the part of each: 0 train, 1 validation, 2
    test.
    """

    rows: np.ndarray
    part: np.ndarray


def select(
    digits: np.ndarray,
    region: np.ndarray,
    sizes: tuple[int, int, int],
    easy_per_digit: int,
    seed: int,
    name: str,
) -> Selection:
    """As many items as `sizes` say: of each digit the easy ones that training needs, and the rest
    evenly over digits and the other regions.

    Where there are too few ambiguous and hard items, further easy ones take their place. Items in
    no region are not chosen.
    """
    total, share = sum(sizes), sizes[0] / sum(sizes)
    # of each digit, so that training's share of them is enough
    needed = math.ceil(easy_per_digit / share - 1e-9)
    cell = np.where(region == NONE, -1, digits * len(REGIONS) + region)
    available = np.bincount(cell[cell >= 0], minlength=DIGITS * len(REGIONS)).reshape(
        DIGITS, len(REGIONS)
    )
    fewest = int(available[:, EASY].argmin())
    if available[fewest, EASY] < needed:
        raise InputError(
            f"{name} has {available[fewest, EASY]} easy items of digit {fewest}, but "
            f"{easy_per_digit} of each in training take {needed}; "
            "lower easy_per_digit or easy_confidence."
        )
    if needed * DIGITS > total:
        raise InputError(
            f"{name} is to have {total} items, but {easy_per_digit} easy ones of each digit in "
            f"training alone take {needed * DIGITS}."
        )
    if available.sum() < total:
        raise InputError(
            f"{name} is to have {total} items, but only {available.sum()} are easy, ambiguous or "
            "hard; ask for fewer."
        )
    wanted = np.zeros_like(available)
    wanted[:, EASY] = needed
    others = np.arange(len(REGIONS)) != EASY
    wanted[:, others] = even_quotas(
        available[:, others].ravel(), min(total - wanted.sum(), available[:, others].sum())
    ).reshape(DIGITS, -1)
    wanted[:, EASY] += even_quotas(available[:, EASY] - needed, total - wanted.sum())
    rows = draw(cell, wanted.ravel(), seed)
    part = np.empty(len(rows), np.int8)
    for number, mine in enumerate(
        stratified_split(cell[rows], [size / total for size in sizes], seed)
    ):
        part[mine] = number
    return Selection(rows, part)


def even_quotas(available: np.ndarray, total: int) -> np.ndarray:
    """How many to take from each cell: as equal as what is available allows, `total` in all; of the
    last ones, the first cells get one more.

    >>> even_quotas(np.array([1, 10, 10]), 8).tolist()
    [1, 4, 3]
    """
    if total > available.sum():
        raise InputError(f"{total} items cannot be taken from {available.sum()}.")
    # where every cell gives at most 0, 1, 2, ...
    taken = np.minimum(available[:, None], np.arange(available.max(initial=0) + 1)).sum(0)
    quotas = np.minimum(available, np.flatnonzero(taken <= total)[-1])
    more = np.flatnonzero(available > quotas)[: total - quotas.sum()]
    quotas[more] += 1
    return quotas


def draw(cell: np.ndarray, quotas: np.ndarray, seed: int) -> np.ndarray:
    """Rows, in order: so many of each cell as its quota says, drawn without replacement; cells
    below 0 are left alone.

    >>> draw(np.array([0, 1, 1, 1, -1]), np.array([1, 2]), seed=0).tolist()
    [0, 1, 3]
    """
    shuffled = generator(seed, "corpus-choice").permutation(len(cell))
    shuffled = shuffled[cell[shuffled] >= 0]
    by_cell = shuffled[np.argsort(cell[shuffled], kind="stable")]
    size = np.bincount(cell[by_cell], minlength=len(quotas))
    rank = np.arange(len(by_cell)) - np.repeat(np.cumsum(size) - size, size)  # within the cell
    return np.sort(by_cell[rank < quotas[cell[by_cell]]])
