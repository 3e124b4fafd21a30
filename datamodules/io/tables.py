"""Published tables as JSON lines, CSV or parquet, from a file or from the hub.

A file is data: nothing in it is run, opened or fetched.
"""

import csv
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import InputError, name_rows

MOST_ROWS = 100_000_000  # a small parquet file can announce any number of equal rows
Table = dict[str, list[Any]]


def read_table(path: Path, columns: Sequence[str], optional: Sequence[str] = ()) -> Table:
    """These columns of a .jsonl, .csv or .parquet file, row by row.

    In CSV all values are text, also where they look like numbers or say "NA". Of the `optional`
    columns there are those that the file has. A folder stands for all .parquet files in it, in the
    order of their paths.
    """
    if path.is_dir():
        parts = [read_table(part, columns, optional) for part in sorted(path.rglob("*.parquet"))]
        if not parts:
            raise InputError(f"{path} holds no .parquet file; give a file, or a folder of them.")
        return {
            column: [value for part in parts for value in part[column]]
            for column in parts[0]
            if all(column in part for part in parts)
        }
    readers = {".csv": ("CSV", _csv), ".jsonl": ("JSON lines", _json_lines)}
    kind, read = readers.get(path.suffix, ("parquet", _parquet))
    try:
        table = read(path, (*columns, *optional))
    except FileNotFoundError as error:
        raise InputError(f"there is no {path}; give a .csv, .jsonl or .parquet file.") from error
    # Arrow has a base class of its own, the others raise ValueError; KeyError and OverflowError are
    # of values that Python has no equal of
    except (
        pa.ArrowException,
        csv.Error,
        OSError,
        ValueError,
        RecursionError,
        KeyError,
        OverflowError,
    ) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} cannot be read as {kind}; it was cut short or altered."
        ) from error
    _check_columns(table, str(path), columns)
    return table


def _csv(path: Path, wanted: Sequence[str]) -> Table:
    with open(path, encoding="utf-8-sig", newline="") as stream:
        lines = csv.reader(stream, strict=True)
        names = next(lines, [])
        rows = [row for row in lines if row]
    _check_rows(rows)
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise InputError(
            f"{path} has two columns {twice[0]}; every column needs a name of its own."
        )
    ragged = [place for place, row in enumerate(rows) if len(row) != len(names)]
    fault = f"more or fewer than {len(names)} values"
    refuse(ragged, path, fault, "every row must have one for each name in the first line")
    return {name: [row[names.index(name)] for row in rows] for name in wanted if name in names}


def _json_lines(path: Path, wanted: Sequence[str]) -> Table:
    with open(path, encoding="utf-8-sig") as stream:
        rows = [json.loads(line) for line in stream if line.strip()]
    _check_rows(rows)
    other = [place for place, row in enumerate(rows) if not isinstance(row, dict)]
    refuse(other, path, "no names", 'every row must be as {"name": value}')
    there = set().union(*rows)
    return {name: [row.get(name) for row in rows] for name in wanted if name in there}


def _parquet(path: Path, wanted: Sequence[str]) -> Table:
    with pq.ParquetFile(path) as file:
        refuse_too_many_rows(file.metadata.num_rows, path)
        _check_rows(range(file.metadata.num_rows))
        names = [name for name in wanted if name in file.schema_arrow.names]
        table = file.read(columns=names)
    return {name: table.column(name).to_pylist() for name in names}


def refuse_too_many_rows(announced: int, path: Path) -> None:
    """Raises an `InputError` if parquet files announce more rows than a table may have."""
    if not 0 <= announced <= MOST_ROWS:
        raise InputError(f"{path} announces {announced:,} rows; a table may have {MOST_ROWS:,}.")


def read_hub_table(name: str, columns: Sequence[str], optional: Sequence[str] = ()) -> Table:
    """The same of a dataset on the Hugging Face hub, all its parts one after the other.

    The library runs no code that a dataset brings.

    Pictures are given as the bytes that the dataset holds: the library would open any path or
    address that a row names instead.
    """
    import datasets  # takes a second to import, which only those who use the hub should pay

    try:
        result = datasets.load_dataset(name)
    except Exception as error:  # of many types, which all mean the same to the user
        raise InputError(
            f"{name} could not be loaded from the hub ({type(error).__name__}); give the id of a "
            "dataset, or a file."
        ) from error
    parts = list(result.values()) if isinstance(result, dict) else [result]
    table: Any = datasets.concatenate_datasets(parts).with_format("arrow")  # pyright: ignore[reportArgumentType]
    _check_columns(table.column_names, name, columns)
    there = [column for column in (*columns, *optional) if column in table.column_names]
    return table.select_columns(there)[:].to_pydict()


def _check_rows(rows: Sequence[Any]) -> None:
    if not rows:
        raise ValueError("no rows")


def _check_columns(there: Any, source: str, columns: Sequence[str]) -> None:
    missing = [column for column in columns if column not in there]
    if missing:
        raise InputError(f"{source} has no column {missing[0]}; it must have {', '.join(columns)}.")


def refuse(rows: Sequence[int] | np.ndarray, path: Path, fault: str, allowed: str) -> None:
    """Raises an `InputError` if there are rows at fault; it names the first, counted from 0.

    >>> refuse([3, 5], Path("raw_data.csv"), "no text", "every item needs one")
    Traceback (most recent call last):
    core.errors.InputError: raw_data.csv has no text in rows 3, 5; every item needs one.
    """
    if len(rows):
        raise InputError(f"{path} has {fault} in {name_rows(rows)}; {allowed}.")


@contextmanager
def quietly() -> Iterator[None]:
    """Silence the library's progress bars, which flash by, and its log of errors.

    Errors are raised all the same.
    """
    import datasets
    from datasets.utils import are_progress_bars_disabled
    from datasets.utils import logging as log

    verbosity, bars = log.get_verbosity(), not are_progress_bars_disabled()
    log.set_verbosity(logging.CRITICAL)
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            datasets.enable_progress_bars()
