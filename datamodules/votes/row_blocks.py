"""Tables by blocks of rows, so that temporary arrays stay small beside the table itself."""

from collections.abc import Iterator

import numpy as np

BLOCK = 1 << 20  # numbers that are worked on at once


def rows_at_once(columns: int) -> int:
    """How many rows of so many columns make a block.

    >>> rows_at_once(1024)
    1024
    """
    return max(1, BLOCK // columns)


def row_blocks(table: np.ndarray) -> Iterator[slice]:
    """All rows of a table, one block after the other.

    >>> [(rows.start, rows.stop) for rows in row_blocks(np.zeros((3, 1 << 19)))]
    [(0, 2), (2, 4)]
    """
    step = rows_at_once(table.shape[1])
    return (slice(start, start + step) for start in range(0, len(table), step))
