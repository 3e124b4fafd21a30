"""Published tables as JSON lines or CSV, read by the datasets library without a network and without leaving a cache behind."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from errors import InputError, name_rows


def read_table(path: Path, columns: Sequence[str]) -> dict[str, list[Any]]:
    """These columns of a .jsonl or .csv file, row by row; in CSV all values are text, also where they look like numbers or say "NA".

    Both formats pass through an Arrow file of the datasets library. It lies in a folder that is removed at once: a kept one could go stale.
    """
    from datasets import Dataset  # takes a second to import, which only those who read a table should pay
    from datasets.exceptions import DatasetGenerationError

    with TemporaryDirectory() as cache, _quietly():
        try:
            if path.suffix == ".csv":
                as_text = {"converters": dict.fromkeys(columns, str), "keep_default_na": False}
                table = Dataset.from_csv(str(path), cache_dir=cache, keep_in_memory=True, **as_text)
            else:
                table = Dataset.from_json(str(path), cache_dir=cache, keep_in_memory=True)
        except (DatasetGenerationError, StopIteration, ValueError) as error:  # the last two where there are no rows
            kind = "CSV" if path.suffix == ".csv" else "JSON lines"
            raise InputError(f"{path} cannot be read as {kind}; it was cut short or altered.") from error
    assert isinstance(table, Dataset)
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise InputError(f"{path} has no column {missing[0]}; it must have {', '.join(columns)}.")
    return table.select_columns(list(columns))[:]


def refuse(rows: Sequence[int] | np.ndarray, path: Path, fault: str, allowed: str) -> None:
    """Nothing, unless there are rows at fault: then an error that names the first of them, counted from 0.

    >>> refuse([3, 5], Path("raw_data.csv"), "no text", "every item needs one")
    Traceback (most recent call last):
    errors.InputError: raw_data.csv has no text in rows 3, 5; every item needs one.
    """
    if len(rows):
        raise InputError(f"{path} has {fault} in {name_rows(rows)}; {allowed}.")


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the library's progress bars, which flash by, and its log of errors, which are raised anyway."""
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
