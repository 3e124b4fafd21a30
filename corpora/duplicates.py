"""Duplicate images, exact and near, within a corpus and across corpora, and what they leak from one
part to another.

Two images are near-duplicates where their pixels correlate by a threshold or more (normalised
cross-correlation: brightness and contrast do not matter). Images are compared by their main
components first. For standardised images of length 1 a correlation is 1 - distance² / 2, and
components never lengthen a distance, so that who is too far apart there is too far apart in all
pixels: the shortcut misses no pair.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError

BLOCK = 2048  # images compared at once with as many others: 16 MB
COMPONENTS = 48


class Pairs(NamedTuple):
    """Row numbers of images that are alike, the earlier one first, in order."""

    first: np.ndarray
    second: np.ndarray


def exact_pairs(images: np.ndarray) -> Pairs:
    """Every image that was there before, pixel by pixel, with its first appearance.

    >>> images = np.zeros((4, 28, 28), np.uint8)
    >>> images[1] = 9
    >>> exact_pairs(images)
    Pairs(first=array([0, 0]), second=array([2, 3]))
    """
    flat = np.ascontiguousarray(images).reshape(len(images), -1)
    _, first, which = np.unique(
        flat.view(f"V{flat.shape[1]}")[:, 0], return_index=True, return_inverse=True
    )
    again = np.flatnonzero(first[which] != np.arange(len(images)))
    return Pairs(first[which][again], again)


def near_pairs(images: np.ndarray, correlation: float) -> Pairs:
    """All pairs whose pixels correlate by so much or more.

    An image of one grey value correlates with none.
    """
    if not 0 < correlation <= 1:
        raise InputError(
            f"near_duplicate is {correlation}; it must be a correlation above 0 and at most 1."
        )
    unit = _standardised(images)
    short = unit @ _main_components(unit)
    # neighbours on the first component come together, and distant blocks need no comparison
    along, order = short[:, 0].sort(stable=True)
    furthest = (2 * (1 - correlation)) ** 0.5
    result = []
    for rows, others in _near_blocks(along, furthest + 1e-4):
        left, right = short[order[rows]], short[order[others]]
        squares = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T
        # rounding must not lose a pair
        one, other = (squares <= furthest**2 + 1e-4).nonzero(as_tuple=True)
        one, other = order[rows][one], order[others][other]
        one, other = one[one != other], other[one != other]
        alike = torch.cat(
            [
                (unit[a] * unit[b]).sum(1)
                for a, b in zip(one.split(16_384), other.split(16_384), strict=True)
            ]
            or [short[:0, 0]]
        )
        certain = alike >= correlation - 1e-6
        result.append(
            torch.stack([torch.minimum(one, other)[certain], torch.maximum(one, other)[certain]], 1)
        )
    pairs = torch.cat(result).unique(dim=0).numpy() if result else np.empty((0, 2), int)
    return Pairs(pairs[:, 0], pairs[:, 1])


def first_of_each(items: int, pairs: Sequence[Pairs]) -> np.ndarray:
    """Where an image is kept: the first of those that are alike.

    One that is like a removed image alone stays.

    >>> first_of_each(4, [Pairs(np.array([0, 1]), np.array([1, 2]))]).tolist()
    [True, False, True, True]
    """
    kept = np.ones(items, bool)
    first, second = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    for row in np.lexsort(
        (first, second)
    ):  # duplicates are few, and whether one is kept depends on those before it
        kept[second[row]] &= not kept[first[row]]
    return kept


class Leak(NamedTuple):
    """Pairs that are alike although they lie in different parts."""

    one: str
    other: str
    pairs: np.ndarray  # row numbers [P, 2], those of `one` first


def leaks(parts: np.ndarray, pairs: Pairs) -> list[Leak]:
    """Which pairs of parts (the words of each row, such as "mnist train") share alike images, in
    order of their names.

    >>> [leak] = leaks(np.array(["b", "b", "a"]), Pairs(np.array([0, 0]), np.array([1, 2])))
    >>> leak.one, leak.other, leak.pairs.tolist()
    ('a', 'b', [[2, 0]])
    """
    swap = parts[pairs.first] > parts[pairs.second]
    rows = np.stack(
        [np.where(swap, pairs.second, pairs.first), np.where(swap, pairs.first, pairs.second)], 1
    )
    named = parts[rows].reshape(-1, 2)
    between = [
        tuple(names) for names in np.unique(named[named[:, 0] != named[:, 1]], axis=0).tolist()
    ]
    return [
        Leak(one, other, rows[(named[:, 0] == one) & (named[:, 1] == other)])
        for one, other in between
    ]


def _standardised(images: np.ndarray) -> Tensor:
    flat = torch.from_numpy(images.reshape(len(images), -1).astype(np.float32))
    flat -= flat.mean(1, keepdim=True)
    return flat / flat.norm(dim=1, keepdim=True).clamp(min=1e-6)


def _main_components(unit: Tensor) -> Tensor:
    """An orthonormal basis [pixels, components] of most of what differs between images."""
    values = torch.linalg.eigh((unit.T @ unit).double())
    return values.eigenvectors[:, -COMPONENTS:].flip(1).to(unit.dtype)


def _near_blocks(along: Tensor, furthest: float) -> Iterator[tuple[slice, slice]]:
    """Blocks of rows in ascending order whose ranges come within this distance of each other; each
    two once.
    """
    starts = range(0, len(along), BLOCK)
    for start in starts:
        reach = along[min(start + BLOCK, len(along)) - 1] + furthest
        for other in range(start, len(along), BLOCK):
            if along[other] > reach:
                break
            yield slice(start, start + BLOCK), slice(other, other + BLOCK)
