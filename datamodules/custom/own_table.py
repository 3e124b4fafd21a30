"""Votes of the user's own, in three forms: a row per vote, counts per class, or probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from core.errors import InputError, name_some
from datamodules.custom.own_items import Items, listed_items
from datamodules.io.arrow_numbers import numbers
from datamodules.io.arrow_tables import pc, refuse_rows
from datamodules.io.dictionary_encoding import Encoded, texts
from datamodules.votes.annotations import Annotations, count_votes, repeated_votes
from datamodules.votes.labels import printed
from datamodules.votes.table import VoteTable
from datamodules.votes.table_checks import check_counts

MOST_CLASSES = int(np.iinfo(np.int16).max)
LONGEST_NAME = 1000  # characters of a class's name


@dataclass(frozen=True)
class OwnTable:
    """What was read, in the order of the items; those without a vote are in no table."""

    votes: VoteTable  # of items with votes
    voted: np.ndarray  # their row numbers among all items
    class_names: tuple[str, ...]
    repeated: np.ndarray  # rows of the file in which someone votes on an item again
    annotations: Annotations | None = None  # their items are rows of `votes`


def read_single_votes(
    columns: dict[str, Encoded],
    item: str,
    label: str,
    annotator: str | None,
    items: Items,
    classes: Sequence[str],
    source: Path | str,
) -> OwnTable:
    """One row per vote.

    Classes are those given, or those that occur: numbers by size, else texts in their order.
    """
    values, codes = columns[label]
    names = tuple(classes) or tuple(_in_order(values))
    _check_classes(names, source)
    places = pc.index_in(texts(values), value_set=pa.array(names, pa.string()))
    place = places.fill_null(-1).to_numpy(zero_copy_only=False)
    strange = np.flatnonzero(place < 0)
    if len(strange):
        rows, fault = np.isin(codes, strange), f"'{texts(values)[int(strange[0])].as_py()}'"
        allowed = f"the classes are {', '.join(names)}"
        refuse_rows(np.flatnonzero(rows), source, label, fault, allowed)
    chosen = place.astype(np.int16)[codes]
    row = _places(columns[item].values, items, source).astype(np.int32)[columns[item].codes]
    counts = count_votes(row, chosen, len(items), len(names))
    voted = np.flatnonzero(counts.any(1))
    annotations, repeated = None, np.empty(0, int)
    if annotator is not None:
        repeated = repeated_votes(row, columns[annotator].codes)
    if len(voted) < len(items):
        rank = np.cumsum(np.bincount(voted, minlength=len(items))).astype(np.int32) - 1
        counts, row = counts[voted], rank[row]  # among the items with votes
    if annotator is not None:
        people, person = columns[annotator]
        annotations = Annotations(row, chosen, person, texts(people).to_pylist())
    return OwnTable(VoteTable(counts, source=str(source)), voted, names, repeated, annotations)


def read_shares(
    table: pa.Table,
    item: str,
    columns: Sequence[str],
    are_counts: bool,
    items: Items,
    classes: Sequence[str],
    source: Path | str,
) -> OwnTable:
    """One row per item, with counts or probabilities.

    There is a column for each class, or one column of lists.
    """
    result = listed_items(table, item, source)
    values = numbers(table, columns, source)
    names = tuple(classes or (columns if len(columns) > 1 else map(str, range(values.shape[1]))))
    _check_classes(names, source)
    if len(names) != values.shape[1]:
        raise InputError(
            f"{source} has {values.shape[1]} numbers per item, but data.classes names "
            f"{len(names)} classes; they must be as many."
        )
    same = result.ids.equals(items.ids)
    place = np.arange(len(items)) if same else _places(result.ids, items, source)
    used = np.arange(len(values))
    if are_counts:
        check_counts(values, str(source))
        used = np.flatnonzero(values.any(1))
        if len(used) == 0:
            raise InputError(f"{source} has no vote for any item; there is nothing to learn from.")
        votes = VoteTable(values[used], source=str(source))
    else:
        votes = VoteTable.from_probs(values, source=str(source))
    order = np.argsort(place[used])
    ordered = votes if np.array_equal(order, np.arange(len(order))) else votes.take(order)
    return OwnTable(ordered, place[used][order], names, np.empty(0, int))


def _places(ids: pa.Array, items: Items, source: Path | str) -> np.ndarray:
    """Where each id is among the items."""
    place = pc.index_in(texts(ids), value_set=items.ids)
    if place.null_count:
        unknown = texts(ids).filter(place.is_null())
        raise InputError(
            f"{source} has votes on items that {items.source} does not have: "
            f"{name_some(unknown[:4].to_pylist(), len(unknown))}."
        )
    return place.to_numpy()


def _in_order(values: pa.Array) -> list[str]:
    if not pa.types.is_integer(values.type):
        number = pc.match_substring_regex(values, r"^[+-]?\d+(\.\d+)?$")
        if pc.all(number).as_py():
            return values.take(pc.sort_indices(values.cast(pa.float64()))).to_pylist()
    return texts(values.take(pc.sort_indices(values))).to_pylist()


def _check_classes(names: Sequence[str], source: Path | str) -> None:
    if len(names) < 2:
        raise InputError(
            f"{source} has {len(names)} class; there must be at least two, and if not all occur, "
            "data.classes must name them."
        )
    if len(names) > MOST_CLASSES:
        raise InputError(
            f"{source} has {len(names):,} classes; there can be at most {MOST_CLASSES:,}, so look "
            "whether the right column is named."
        )
    longest = max(names, key=len)
    if len(longest) > LONGEST_NAME:
        raise InputError(
            f"{source} has a class with a name of {len(longest):,} characters "
            f"({printed(longest)}); a name may have {LONGEST_NAME:,}, so look whether the "
            "right column is named."
        )
    if len(set(names)) < len(names):
        raise InputError(f"data.classes is {list(names)}; no class may be named twice.")
