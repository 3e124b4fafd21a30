"""Tables of the user's own as Arrow columns: CSV, parquet or a dataset of the hub.

They may be of any length: no row becomes a Python object.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as csv
import pyarrow.parquet as pq

from core.errors import InputError, name_rows
from datamodules.io.tables import quietly, refuse_too_many_rows

pc: Any = pyarrow.compute  # its functions are made at import, where no type checker sees them
# every different word once, and a number for each row
WORDS = pa.dictionary(pa.int32(), pa.string())
AT_ONCE = 1 << 20  # rows
BLOCK = 1 << 24  # bytes of a CSV


def stream_columns(where: Path | str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """These columns, some rows at a time.

    `where` is a .csv or .parquet file, a folder of .parquet files, or (a text, not a path) the id
    of a dataset on the hub. In CSV all values are text. Nothing is unpickled and no code of a
    dataset is run.
    """
    columns = list(dict.fromkeys(columns))
    if isinstance(where, str):
        yield from _from_hub(where, columns)
        return
    read = _from_csv if where.suffix == ".csv" else _from_parquet
    try:
        for batch in read(where, columns):
            # a damaged file may hold numbers of words that it does not have
            batch.validate(full=True)
            yield _of_plain_types(batch)
    except InputError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        kind = "CSV" if where.suffix == ".csv" else "parquet"
        why = " ".join(str(error).split())[:160]
        raise InputError(
            f"{where} cannot be read as {kind} ({why}); it was cut short, altered or is something "
            "else."
        ) from error


def read_columns(where: Path | str, columns: Sequence[str]) -> pa.Table:
    """All rows of these columns; raises an `InputError` where there is none."""
    batches = [pa.Table.from_batches([batch]) for batch in stream_columns(where, columns)]
    try:
        table = pa.concat_tables(batches, promote_options="permissive") if batches else pa.table({})
    except pa.ArrowException as error:
        raise InputError(
            f"the files of {where} hold different kinds of values in a column; write all of them "
            "alike."
        ) from error
    if len(table) == 0:
        raise InputError(f"{where} has no rows; it needs at least one.")
    return table


def _from_csv(path: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    parse = csv.ParseOptions(newlines_in_values=True)
    # the first block, for the names of the columns
    with csv.open_csv(path, parse_options=parse) as stream:
        _check(stream.schema.names, columns, path)
    types = dict.fromkeys(columns, WORDS)
    convert = csv.ConvertOptions(
        column_types=types, include_columns=columns, strings_can_be_null=False
    )
    with csv.open_csv(path, csv.ReadOptions(block_size=BLOCK), parse, convert) as stream:
        yield from stream


def _from_parquet(path: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    paths = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not paths:
        raise InputError(f"{path} holds no .parquet file; give a file, or a folder of such files.")
    refuse_too_many_rows(sum(pq.read_metadata(each).num_rows for each in paths), path)
    for each in paths:
        schema = pq.read_schema(each)
        _check(schema.names, columns, each)
        words = [name for name in columns if is_text(schema.field(name).type)]
        with pq.ParquetFile(each, read_dictionary=words) as file:
            yield from file.iter_batches(AT_ONCE, columns=columns)


def _from_hub(name: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    import datasets

    try:
        with quietly():
            result: Any = datasets.load_dataset(name)
    except Exception as error:  # of many types, which all mean the same to the user
        reason = type(error).__name__
        raise InputError(
            f"there is no file {name}, and no dataset of that id could be loaded from the hub "
            f"({reason}); give a file or an id."
        ) from error
    parts = list(result.values()) if isinstance(result, dict) else [result]
    whole = datasets.concatenate_datasets(parts)
    _check(whole.column_names, columns, name)
    for part in whole.select_columns(columns).with_format("arrow").iter(AT_ONCE):
        yield from map(_of_plain_types, part.to_batches())  # pyright: ignore[reportAttributeAccessIssue]


def _of_plain_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [plain(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def plain(values: pa.Array) -> pa.Array:
    """The same values in one of Arrow's older types.

    For views, and for types of other libraries, Arrow lacks most functions.

    >>> str(plain(pa.array(["yes", "no"], pa.string_view())).type)
    'large_string'
    """
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(values.storage)
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(values.indices, plain(values.dictionary))
    if pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return values.cast(pa.large_binary())
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        # Arrow's own cast of them makes lists that are not valid
        ends = np.cumsum(pc.list_value_length(values).fill_null(0).to_numpy())
        return pa.LargeListArray.from_arrays(
            np.append(0, ends), values.flatten(), mask=values.is_null()
        )
    return values


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are texts, in any of Arrow's ways to hold them."""
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_such(kind) for is_such in texts)


def _check(result: Sequence[str], columns: list[str], source: Path | str) -> None:
    twice = [name for name in columns if list(result).count(name) > 1]
    if twice:
        raise InputError(
            f"{source} has the column {twice[0]} more than once; columns need names of their own."
        )
    missing = [name for name in columns if name not in result]
    if missing:
        raise InputError(f"{source} has no column {missing[0]}; it has {', '.join(result)}.")


def refuse_rows(
    rows: np.ndarray, source: Path | str, column: str, fault: str, allowed: str
) -> None:
    """Raises an `InputError` if there are rows at fault, counted from 0 without the header.

    >>> refuse_rows(np.array([3, 5]), "votes.csv", "label", "no value", "every row needs one")
    Traceback (most recent call last):
    core.errors.InputError: votes.csv, column label, has no value in rows 3, 5; every row needs one.
    """
    if len(rows):
        raise InputError(f"{source}, column {column}, has {fault} in {name_rows(rows)}; {allowed}.")
