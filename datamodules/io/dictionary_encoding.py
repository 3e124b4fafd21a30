"""Columns of words as numbers: every different value once, and for each row which of them it has.

There may be any number of rows.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from core.errors import InputError
from datamodules.io.arrow_tables import pc, refuse_rows, stream_columns


class Encoded(NamedTuple):
    """A column of whole numbers or texts.

    `codes` are places in `values`, which are in no order and all occur.
    """

    values: pa.Array
    codes: np.ndarray  # int32, one per row


def encode_columns(where: Path | str, columns: Sequence[str]) -> dict[str, Encoded]:
    """Columns of a file of any length; all but some rows are held as numbers alone."""
    growing = {name: _Growing(name, where) for name in columns}
    for batch in stream_columns(where, columns):
        for name, column in growing.items():
            column.add(batch.column(name))
    return {name: column.finish() for name, column in growing.items()}


def encoded(table: pa.Table, column: str, source: Path | str) -> Encoded:
    """One column of a table.

    >>> values, codes = encoded(pa.table({"label": ["yes", "no", "yes"]}), "label", "votes.csv")
    >>> values.to_pylist(), codes.tolist()
    (['yes', 'no'], [0, 1, 0])
    """
    growing = _Growing(column, source)
    for chunk in table[column].chunks:
        growing.add(chunk)
    return growing.finish()


class _Growing:
    """What is known of a column after some of its rows. Empty values are refused."""

    def __init__(self, column: str, source: Path | str):
        self.column, self.source, self.rows = column, source, 0
        self.values: Any = None  # an Array, once there are rows
        self.codes: list[np.ndarray] = []

    def add(self, chunk: pa.Array) -> None:
        if pa.types.is_nested(chunk.type):
            raise InputError(
                f"{self.source}, column {self.column}, holds {chunk.type}; it must hold texts or "
                "whole numbers."
            )
        self._refuse(np.flatnonzero(chunk.is_null().to_numpy(zero_copy_only=False)), "no value")
        chunk = self._numbered(chunk)
        indices = chunk.indices.to_numpy(zero_copy_only=False)
        # a dictionary may hold words that no row has
        used = np.flatnonzero(np.bincount(indices, minlength=len(chunk.dictionary)))
        words = self._words(chunk.dictionary.take(pa.array(used)))
        for bad, fault in (
            (words.is_null(), "no value"),
            (_empty(words), "no value"),
            (_odd(words), "NaN or infinity"),
        ):
            faulty = used[np.flatnonzero(bad.to_numpy(zero_copy_only=False))]
            self._refuse(np.flatnonzero(np.isin(indices, faulty)) if len(faulty) else faulty, fault)
        if pa.types.is_floating(words.type):
            words = words.cast(pa.string())
        place = np.zeros(len(chunk.dictionary), np.int32)
        place[used] = self._places(words)
        self.codes.append(place[indices])
        self.rows += len(chunk)

    def _numbered(self, chunk: pa.Array) -> Any:
        """Every different value once, and a number for each row."""
        try:
            return chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        except pa.ArrowException as error:
            raise self._unread(chunk) from error

    def _unread(self, values: pa.Array) -> InputError:
        return InputError(
            f"{self.source}, column {self.column}, holds {values.type}, which does not read as "
            "text; write it as text."
        )

    def _words(self, values: pa.Array) -> pa.Array:
        """Whole numbers as they are, floats to be looked at first, all else as texts."""
        try:
            if pa.types.is_integer(values.type) and values.type != pa.uint64():
                return values.cast(pa.int64())
            if pa.types.is_floating(values.type):
                return values.cast(pa.float64())
            return values.cast(pa.string())
        except pa.ArrowException as error:
            raise self._unread(values) from error

    def _places(self, words: pa.Array) -> np.ndarray:
        if self.values is None:
            self.values = words.slice(0, 0)
        if self.values.type != words.type:  # numbers in one file of a folder, and texts in another
            self.values, words = self.values.cast(pa.string()), words.cast(pa.string())
        new = words.filter(pc.index_in(words, value_set=self.values).is_null()).unique()
        self.values = pa.concat_arrays([self.values, new])
        return pc.index_in(words, value_set=self.values).to_numpy()

    def _refuse(self, rows: np.ndarray, fault: str) -> None:
        refuse_rows(rows + self.rows, self.source, self.column, fault, "every row needs a value")

    def finish(self) -> Encoded:
        if self.values is None or self.rows == 0:
            raise InputError(f"{self.source} has no rows; it needs at least one.")
        codes = np.empty(self.rows, np.int32)
        start = 0
        for part in self.codes:
            codes[start : start + len(part)] = part
            start += len(part)
        self.codes.clear()
        return Encoded(self.values, codes)


def _empty(words: pa.Array) -> pa.Array:
    if not pa.types.is_string(words.type):
        return pa.array(np.zeros(len(words), bool))
    return pc.equal(pc.utf8_trim_whitespace(words), "").fill_null(False)


def _odd(words: pa.Array) -> pa.Array:
    if not pa.types.is_floating(words.type):
        return pa.array(np.zeros(len(words), bool))
    return pc.invert(pc.is_finite(words)).fill_null(False)


def texts(values: pa.Array) -> pa.Array:
    """As texts, so that 7 in one file and "7" in another are the same id."""
    return values.cast(pa.string())
