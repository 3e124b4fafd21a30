"""Numbers out of Arrow columns, where a row that holds none is refused by its number."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from core.errors import InputError
from datamodules.io.arrow_tables import is_text, pc, refuse_rows

NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


def numbers(table: pa.Table, columns: Sequence[str], source: Path | str) -> np.ndarray:
    """Numbers of several columns [rows, columns], or of one column with a list in every row.

    What is empty or no number is refused.

    >>> numbers(pa.table({"yes": ["3", "0"], "no": ["1", " 4 "]}), ["yes", "no"], "votes.csv")
    array([[3., 1.],
           [0., 4.]])
    """
    if len(columns) == 1:
        return _lists(table[columns[0]], columns[0], source)
    return np.stack([_numbers(table[name], name, source) for name in columns], axis=1)


def _numbers(chunks: pa.ChunkedArray, column: str, source: Path | str) -> np.ndarray:
    if pa.types.is_dictionary(chunks.type):
        chunks = chunks.cast(pa.string())
    needed = "every row needs a number"
    refuse_rows(_where(chunks.is_null()), source, column, "no value", needed)
    if is_text(chunks.type):
        other = _where(pc.invert(pc.match_substring_regex(chunks, NUMBER)))
        refuse_rows(other, source, column, "what is no number", needed)
        chunks = pc.utf8_trim_whitespace(chunks)
    elif not (pa.types.is_integer(chunks.type) or pa.types.is_floating(chunks.type)):
        raise InputError(f"{source}, column {column}, holds {chunks.type}; it must hold numbers.")
    # counts beyond 2**53 lose their last digits, and are refused as too many
    result = chunks.cast(pa.float64(), safe=False).to_numpy()
    refuse_rows(np.flatnonzero(~np.isfinite(result)), source, column, "NaN or infinity", needed)
    return result


def _lists(chunks: pa.ChunkedArray, column: str, source: Path | str) -> np.ndarray:
    kind = chunks.type
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_such(kind) for is_such in lists):
        raise InputError(
            f"{source}, column {column}, holds {kind}; one column must hold lists of numbers, or "
            "name one column for each class."
        )
    refuse_rows(_where(chunks.is_null()), source, column, "no list", "every row needs one")
    length = pc.list_value_length(chunks).to_numpy()
    uneven, fault = np.flatnonzero(length != length[0]), f"other than {length[0]} numbers"
    refuse_rows(uneven, source, column, fault, "all rows need equally many")
    if length[0] == 0:
        raise InputError(
            f"{source}, column {column}, holds empty lists; every row needs at least one number."
        )
    flat = pc.list_flatten(chunks)
    if not (pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type)):
        raise InputError(
            f"{source}, column {column}, holds lists of {flat.type}; they must be of numbers."
        )
    gaps = np.unique(_where(flat.is_null()) // length[0])
    refuse_rows(gaps, source, column, "gaps in its lists", "every number is needed")
    single = flat.type in (pa.float16(), pa.float32())
    kept = flat.cast(pa.float32() if single else pa.float64(), safe=False)
    return kept.to_numpy().reshape(len(chunks), length[0])


def _where(mask: Any) -> np.ndarray:
    return np.flatnonzero(mask.to_numpy())
