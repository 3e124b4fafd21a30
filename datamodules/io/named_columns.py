"""Tables of anybody's, whose columns are looked at before they are read: CSV, parquet or JSON
lines.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from core.errors import InputError
from datamodules.io.arrow_tables import read_columns
from datamodules.io.tables import read_table

KINDS = {".csv": "CSV", ".parquet": "parquet", ".jsonl": "JSON lines"}
LONGEST_LINE = 1 << 24  # characters of the line that names the columns
MOST_BYTES = 1 << 29  # of JSON lines, which are held as objects of Python


def column_names(path: Path) -> list[str]:
    """What the columns of a file are called; of JSON lines, those of the first row."""
    readers = {".csv": _of_csv, ".parquet": _of_parquet, ".jsonl": _of_json_lines}
    try:
        return readers[path.suffix](path)
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} cannot be read as {KINDS[path.suffix]}; it was cut short, altered or is "
            "something else."
        ) from error


def read_named(path: Path, columns: Sequence[str], most_rows: int) -> pa.Table:
    """These columns of all rows; a file with more rows than that is refused."""
    if path.suffix == ".parquet":  # a small file can announce any number of equal rows
        refuse_more_rows(pq.read_metadata(path).num_rows, most_rows, path)
    if path.suffix == ".jsonl":
        table = _from_json_lines(path, columns)
    else:
        table = read_columns(path, columns)
    refuse_more_rows(len(table), most_rows, path)
    return table


def refuse_more_rows(rows: int, most: int, path: Path) -> None:
    """Raises an `InputError` where a file has more rows than there can be."""
    if rows > most:
        raise InputError(f"{path} has {rows:,} rows; there are only {most:,} items.")


def _of_csv(path: Path) -> list[str]:
    with csv.open_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True)) as stream:
        return stream.schema.names


def _of_parquet(path: Path) -> list[str]:
    return pq.read_schema(path).names


def _of_json_lines(path: Path) -> list[str]:
    if path.stat().st_size > MOST_BYTES:
        raise InputError(
            f"{path} has more than {MOST_BYTES:,} bytes; write so large a table as parquet."
        )
    with open(path, encoding="utf-8-sig") as stream:
        lines = iter(lambda: stream.readline(LONGEST_LINE), "")
        first = json.loads(next((line for line in lines if line.strip()), "null"))
    if not isinstance(first, dict):
        raise InputError(f'{path} has no names in row 0; every row must be as {{"name": value}}.')
    return list(first)


def _from_json_lines(path: Path, columns: Sequence[str]) -> pa.Table:
    rows, arrays = read_table(path, columns), {}
    for name in columns:
        try:
            arrays[name] = pa.array(rows[name])
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise InputError(
                f"{path}, column {name}, holds different kinds of values, or ones beyond all "
                "measure; write all of them alike."
            ) from error
    return pa.table(arrays)
