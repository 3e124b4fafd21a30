"""Predictions as anybody writes them: a number for each class, in a table or a plain array."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from core.errors import InputError, hint, name_some
from datamodules.custom.own_items import listed_items
from datamodules.io.arrow_numbers import numbers
from datamodules.io.arrow_tables import is_text
from datamodules.io.files import array_header, read_array
from datamodules.io.named_columns import column_names, read_named, refuse_more_rows
from datamodules.votes.labels import printed
from metrics.inputs import check_one


@dataclass(frozen=True)
class RunRecord:
    """What `predict` of this project writes beside its predictions."""

    split: np.ndarray  # the name of each row's split
    people: np.ndarray  # the annotators' distributions [rows, K]


@dataclass(frozen=True)
class PredictionFile:
    """What a file says, checked: rows that are distributions, and whose they are."""

    path: Path
    probs: np.ndarray  # [rows, K], each sums to 1
    ids: pa.Array | None  # texts, each once; None: rows are in the dataset's order
    of_run: RunRecord | None = None  # of a predictions.parquet, whose ids are row numbers


def read_prediction_file(
    path: Path,
    classes: Sequence[str],
    id_columns: Sequence[str],
    most_rows: int,
    item: str | None = None,
) -> PredictionFile:
    """A .npy, .csv, .parquet or .jsonl file; anything that is no prediction of these classes is
    refused in one sentence. Nothing is unpickled.

    Args:
        path: Of the file.
        classes: Their names, in their order.
        id_columns: What the column of items' ids may be called.
        most_rows: How many items there are.
        item: The column of ids, where it is called otherwise.
    """
    if path.suffix == ".npy":
        if item is not None:
            raise InputError(f"--item is {item}, but {path} has no columns with names.")
        return PredictionFile(path, _distributions(_array(path, classes, most_rows), path), None)
    names = column_names(path)
    numbered = [f"model_{number}" for number in range(len(classes))]
    if item is None and {"index", "split", *numbered} <= set(names):
        return _of_run(path, numbered, most_rows)
    columns = _class_columns(path, names, classes)
    others = [name for name in names if name not in columns]
    column = _id_column(path, others, id_columns, item)
    table = read_named(path, [*columns, *([column] if column else [])], most_rows)
    probs = _distributions(numbers(table, columns, path), path)
    return PredictionFile(path, probs, listed_items(table, column, path).ids if column else None)


def _array(path: Path, classes: Sequence[str], most_rows: int) -> np.ndarray:
    shape, *_ = array_header(path)
    if len(shape) != 2 or shape[1] != len(classes):
        raise InputError(
            f"{path} has shape {list(shape)}; it must be [items, {len(classes)}], a number for "
            "each class."
        )
    refuse_more_rows(shape[0], most_rows, path)
    return read_array(path).astype(np.float64)


def _of_run(path: Path, model: list[str], most_rows: int) -> PredictionFile:
    people = [name.replace("model", "annotators") for name in model]
    table = read_named(path, ["index", "split", *model, *people], most_rows)
    split = table["split"]
    if pa.types.is_dictionary(split.type):
        split = split.cast(pa.string())
    if not is_text(split.type) or split.null_count:
        raise InputError(f"{path}, column split, does not hold texts alone; run predict again.")
    record = RunRecord(split.to_numpy(), numbers(table, people, path))
    probs = _distributions(numbers(table, model, path), path)
    return PredictionFile(path, probs, listed_items(table, "index", path).ids, record)


def _class_columns(path: Path, names: list[str], classes: Sequence[str]) -> list[str]:
    """By the classes' names, or by their numbers."""
    numbered = list(map(str, range(len(classes))))
    for columns in (list(classes), numbered):
        if set(columns) <= set(names):
            return columns
    absent = [name for name in classes if name not in names]
    quoted = [f"'{printed(name)}'" for name in absent]
    raise InputError(
        f"{path} has no column for the class{'es' * (len(absent) > 1)} {name_some(quoted)}"
        f"{hint(absent[0], [name for name in names if name not in classes])}; it needs a column "
        f"for each class, named so or by the numbers 0 to {len(classes) - 1}."
    )


def _id_column(
    path: Path, others: list[str], id_columns: Sequence[str], item: str | None
) -> str | None:
    if item is not None:
        if item not in others:
            raise InputError(
                f"{path} has no column {item}, which --item names{hint(item, others)}; it has "
                f"{name_some([printed(name) for name in others]) or 'none but those of classes'}."
            )
        return item
    found = next((name for name in id_columns if name in others), None)
    if found is None and others:
        raise InputError(
            f"{path} has columns besides those of classes "
            f"({name_some([printed(name) for name in others])}); name the one that holds items' "
            "ids by --item, or leave all of them out if rows are in the dataset's order."
        )
    return found


def _distributions(probs: np.ndarray, path: Path) -> np.ndarray:
    """Rows may be rounded, so that they miss 1 by what scores take for rounding."""
    if len(probs) == 0:
        raise InputError(f"{path} has no rows; it needs one for each item.")
    check_one(str(path), torch.from_numpy(probs))
    return probs / probs.sum(1, keepdims=True)
