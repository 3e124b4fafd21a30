"""What cannot be a table of votes or probabilities is refused, with the rows at fault named."""

from collections.abc import Callable

import numpy as np

from core.errors import InputError, name_rows
from datamodules.votes.row_blocks import row_blocks


def check_counts(table: np.ndarray, source: str) -> None:
    """Refuse what cannot be a number of votes. Items without any vote are let through."""
    allowed = "counts must be whole numbers of 0 or more"
    if table.dtype.kind == "f":
        reject(table, not_numbers, source, "votes that are not numbers", allowed)
    reject(table, lambda votes: votes < 0, source, "negative votes", allowed)
    if table.dtype.kind == "f":
        allowed = "counts must be whole numbers; for probabilities use VoteTable.from_probs"
        reject(table, lambda votes: votes != np.floor(votes), source, "fractional votes", allowed)


def as_matrix(values, source: str, what: str) -> np.ndarray:
    """Values as a table of numbers, without a copy where they are one."""
    try:
        table = np.ascontiguousarray(values)
    except ValueError:
        raise InputError(
            f"{source} has rows of different lengths; every row needs one number per class."
        ) from None
    if table.dtype.kind not in "biuf":
        raise InputError(f"{source} holds {table.dtype} values; {what} must be numbers.")
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise InputError(
            f"{source} has shape {list(table.shape)}; {what} must be a table of at least one item "
            "and two classes."
        )
    return table


def totals(rows: np.ndarray) -> np.ndarray:
    """The sum of each row, as a column."""
    return rows.sum(1, keepdims=True, dtype=np.float64)


def not_numbers(rows: np.ndarray) -> np.ndarray:
    """Where there is NaN or infinity."""
    return ~np.isfinite(rows)


def reject(
    table: np.ndarray,
    is_bad: Callable[[np.ndarray], np.ndarray],
    source: str,
    fault: str,
    allowed: str,
) -> None:
    """Refuse a table with rows in which something is bad; rows are looked at by blocks."""
    bad = [rows.start + np.flatnonzero(is_bad(table[rows]).any(1)) for rows in row_blocks(table)]
    rows = np.concatenate(bad)
    if len(rows):
        raise InputError(f"{source} has {fault} in {name_rows(rows)}; {allowed}.")
