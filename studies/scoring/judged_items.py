"""Which items predictions are judged on, and each file's predictions of them, row by row."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from core.errors import InputError, name_rows, name_some
from datamodules.io.arrow_tables import pc
from datamodules.labelled_items import LabelledItems
from datamodules.votes.labels import printed
from studies.scoring.prediction_file import PredictionFile

SAME = 1e-5  # how far single precision may put an annotators' distribution from what it was


class Judged(NamedTuple):
    """Items, and what each file says of them."""

    rows: np.ndarray  # of the dataset
    probs: dict[Path, np.ndarray]  # [rows, K] by file


def judged_items(files: Sequence[PredictionFile], items: LabelledItems, split: str) -> Judged:
    """The items of a split, of all (`all`), or those that the files have (`given`)."""
    places = {file.path: _places(file, items) for file in files}
    rows = _rows(places, items, split)
    what = {"all": "", "given": ""}.get(split, f"{split} ")
    probs = {file.path: _aligned(file, places[file.path], rows, items, what) for file in files}
    return Judged(rows, probs)


def _rows(places: dict[Path, np.ndarray | None], items: LabelledItems, split: str) -> np.ndarray:
    if split == "all":
        return np.arange(len(items.votes))
    if split != "given":
        rows = items.splits[split]
        if len(rows) == 0:
            raise InputError(f"{items.name} has no {split} items; choose others by --split.")
        return np.sort(rows)
    given: dict[Path, np.ndarray] = {}
    for path, place in places.items():
        if place is None:
            raise InputError(
                f"{path} has no ids of items, so --split given cannot tell which it has; add a "
                "column item."
            )
        given[path] = np.sort(place)
    first = next(iter(given))
    other = [path for path in given if not np.array_equal(given[path], given[first])]
    if other:
        raise InputError(
            f"{other[0]} has other items than {first}; with --split given all files must have the "
            "same."
        )
    return given[first]


def _places(file: PredictionFile, items: LabelledItems) -> np.ndarray | None:
    """The dataset's row of each of the file's; None where rows are in its order."""
    if file.ids is None:
        return None
    known = items.id_texts()
    if file.of_run:
        known = pa.array(np.arange(len(items.votes))).cast(pa.string())
    place = pc.index_in(file.ids, value_set=known)
    if place.null_count:
        unknown = file.ids.filter(place.is_null())
        some = [printed(name) for name in unknown[:3].to_pylist()]
        raise InputError(
            f"{file.path} has items that {items.name} does not have: "
            f"{name_some(some, len(unknown))}; ids are "
            f"{'row numbers from 0 on' if items.ids is None else 'those of its items'}."
        )
    rows = place.to_numpy()
    if file.of_run:
        _check_run(file, rows, items)
    return rows


def _check_run(file: PredictionFile, rows: np.ndarray, items: LabelledItems) -> None:
    """A run knows the votes and the split that it was made with."""
    assert file.of_run is not None
    other = np.abs(file.of_run.people - items.votes.probs[rows]).max(1) > SAME
    if other.any():
        raise InputError(
            f"{file.path} was made with other votes than those of {items.name} in "
            f"{name_rows(np.flatnonzero(other))}; name the data of its run."
        )
    split = np.full(len(items.votes), "", dtype="<U5")
    for name in ("train", "val", "test"):  # an item that is both of the last is called test
        split[items.splits[name]] = name
    if (split[rows] != file.of_run.split).any():
        raise InputError(
            f"{file.path} was made with another split of {items.name}; give the seed of its run "
            "by --seed_everything, and the options of its split."
        )


def _aligned(
    file: PredictionFile,
    place: np.ndarray | None,
    rows: np.ndarray,
    items: LabelledItems,
    what: str,
) -> np.ndarray:
    every = len(items.votes)
    if place is None:
        if len(file.probs) == len(rows):
            return file.probs
        if len(file.probs) == every:
            return file.probs[rows]
        right = [f"{len(rows):,}, one for each {what}item"]
        right += [f"{every:,}, one for each item of {items.name}"] * (len(rows) < every)
        raise InputError(
            f"{file.path} has {len(file.probs):,} rows and no ids; it must have "
            f"{', or '.join(right)}, in the dataset's order."
        )
    of_row = np.full(every, -1)
    of_row[place] = np.arange(len(place))
    absent = rows[of_row[rows] < 0]
    if len(absent):
        ids = items.id_texts() if not file.of_run else pa.array(np.arange(every)).cast(pa.string())
        some = [printed(name) for name in ids.take(pa.array(absent[:3])).to_pylist()]
        raise InputError(
            f"{file.path} lacks {len(absent):,} of {len(rows):,} {what}items "
            f"({name_some(some, len(absent))}); add them, or judge what it has by --split given."
        )
    return file.probs[of_row[rows]]
