"""Items that are equal: of texts by themselves, of numbers by a digest of each row, so that a file
larger than memory is read once and not held.
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
    """For every item the first one that is equal to it, which is itself where it is no duplicate;
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
    _, code = np.unique(
        np.concatenate([_digests(block) for block in _blocks(items)]), return_inverse=True
    )
    first = _first_of(code)
    alike = np.flatnonzero(first != np.arange(len(first)))
    for start in range(0, len(alike), AT_ONCE):  # equal digests are not yet equal rows
        rows = alike[start : start + AT_ONCE]
        one, other = (
            _take(items, torch.from_numpy(chosen)).flatten(1) for chosen in (rows, first[rows])
        )
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
    """A sum of each row's words with random weights, modulo 2**64: equal rows have equal sums, and
    others hardly ever.
    """
    rows = block.flatten(1).contiguous().cpu().numpy()
    row_bytes = rows.itemsize * rows.shape[1]
    word = next(
        kind
        for kind in (np.uint64, np.uint32, np.uint16, np.uint8)
        if row_bytes % np.dtype(kind).itemsize == 0
    )
    words = rows.view(word)
    weights = generator(0, "digests").integers(
        2**64, size=words.shape[1], dtype=np.uint64
    ) | np.uint64(1)
    return words.astype(np.uint64, copy=False) @ weights
