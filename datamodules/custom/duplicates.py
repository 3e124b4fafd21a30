"""Items that are equal to an earlier one.

Texts are compared as they are, numbers by a digest of each row: a file larger than memory is read
once and not held.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from core.randomness import generator
from datamodules.memmap_inputs import MemmapInputs

AT_ONCE = 4096  # rows


def first_equal(items: Any) -> np.ndarray | None:
    """For every item the row of the first one that is equal to it; its own if it is no duplicate.

    None for items that cannot be looked at by rows.

    >>> first_equal(["a", "b", "a", "a"])
    array([0, 1, 0, 0])
    >>> first_equal(torch.tensor([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    array([0, 1, 0])
    """
    if isinstance(items, list):
        return _first_of(pa.array(items, pa.string()).dictionary_encode().indices.to_numpy())
    if not isinstance(items, Tensor | MemmapInputs):
        return None
    digests = np.concatenate([_digests(block) for block in _blocks(items)])
    _, code = np.unique(digests, return_inverse=True)
    first = _first_of(code)
    alike = np.flatnonzero(first != np.arange(len(first)))
    for start in range(0, len(alike), AT_ONCE):  # equal digests are not yet equal rows
        rows = alike[start : start + AT_ONCE]
        pair = (torch.from_numpy(chosen) for chosen in (rows, first[rows]))
        one, other = (_take(items, chosen).flatten(1) for chosen in pair)
        different = rows[(one != other).any(1).numpy()]
        first[different] = different
    return first


def _first_of(code: np.ndarray) -> np.ndarray:
    first = np.empty(int(code.max()) + 1, np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]  # of equal places, the last one assigned stays
    return first[code]


def _blocks(items: Tensor | MemmapInputs) -> Iterator[Tensor]:
    return iter(items.split(AT_ONCE)) if isinstance(items, Tensor) else items.blocks()


def _take(items: Tensor | MemmapInputs, rows: Tensor) -> Tensor:
    return items[rows] if isinstance(items, Tensor) else items(rows)


def _digests(block: Tensor) -> np.ndarray:
    """A sum of each row's words with random weights, modulo 2**64.

    Equal rows have equal sums, and different rows hardly ever do.
    """
    rows = block.flatten(1).contiguous().cpu().numpy()
    row_bytes = rows.itemsize * rows.shape[1]
    kinds = (np.uint64, np.uint32, np.uint16, np.uint8)
    words = rows.view(next(kind for kind in kinds if row_bytes % np.dtype(kind).itemsize == 0))
    weights = generator(0, "digests").integers(2**64, size=words.shape[1], dtype=np.uint64)
    return words.astype(np.uint64, copy=False) @ (weights | np.uint64(1))
