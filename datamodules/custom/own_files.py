"""Which files and columns hold votes and items of the user's own, and how they are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from core.bounded_files import is_endless
from core.errors import InputError, name_some
from datamodules.custom.own_items import (
    Items,
    items_of_votes,
    listed_items,
    numbered_items,
    read_images,
)
from datamodules.custom.own_table import OwnTable, read_shares, read_single_votes
from datamodules.embedders.embedder import Inputs
from datamodules.io.arrow_tables import read_columns
from datamodules.io.dictionary_encoding import encode_columns
from datamodules.memmap_inputs import memmap_array
from datamodules.votes.labels import printed


class OwnData(NamedTuple):
    """What the files say: all items, and the votes on those that have any."""

    items: Items
    table: OwnTable

    @property
    def unvoted(self) -> np.ndarray:
        """Row numbers of the items that nobody voted on."""
        return np.setdiff1d(np.arange(len(self.items)), self.table.voted)


@dataclass(frozen=True)
class OwnFiles:
    """The files and columns that the options of `OwnVotes` name; they are explained there.

    Raises an `InputError` for options that contradict each other. No file is opened before `read`.
    """

    root: str
    votes: str
    item: str
    label: str | None
    annotator: str | None
    counts: tuple[str, ...]
    probs: tuple[str, ...]
    classes: tuple[str, ...]
    inputs: str | None
    text: str | None
    image: str | None
    embedding: str | None
    embeddings: str | None
    split_column: str | None
    ordinal: bool = False

    def __post_init__(self):
        form, kind = self.form, self.kind
        if self.annotator is not None and form != "label":
            raise InputError(
                f"data.annotator is {self.annotator}; only with data.label, one row per vote, can "
                "there be one."
            )
        if kind == "embedding" and form == "label" and self.inputs is None:
            raise InputError(
                "data.embedding needs data.inputs, a table with one row per item; rows of "
                "data.votes are votes here."
            )

    @cached_property
    def form(self) -> str:
        """How the votes are written: label, counts or probs."""
        given = {"label": self.label, "counts": self.counts, "probs": self.probs}
        return _only_one(given, "label (one row per vote), counts or probs")

    @cached_property
    def kind(self) -> str:
        """What the items are: text, image, embedding or embeddings."""
        names = ("text", "image", "embedding", "embeddings")
        given = {name: getattr(self, name) for name in names}
        return _only_one(given, "text, image, embedding or embeddings")

    @property
    def column(self) -> str:
        """The column that holds the items; of `embeddings`, the name of their file."""
        return str(getattr(self, self.kind))

    @property
    def present(self) -> list[Path]:
        """The files that are there; what is on the hub is not."""
        names = (self.votes, self.inputs, self.embeddings)
        paths = (Path(self.root) / name for name in names if name)
        return [path for path in paths if path.exists()]

    @cached_property
    def mapped(self) -> np.ndarray:
        """The array in the file `embeddings`, which stays on disk."""
        return memmap_array(Path(self.root) / str(self.embeddings))

    def read(self) -> OwnData:
        """Read and check everything but images and embeddings."""
        source = self._where(self.votes)
        beside = [] if self.kind == "embeddings" else [self.column]
        beside += [self.split_column] if self.split_column else []
        items = None
        if self.inputs is not None:
            where = self._where(self.inputs)
            items = listed_items(read_columns(where, [self.item, *beside]), self.item, where)
            beside = []
        if self.form == "label":
            return self._read_single_votes(source, items, beside)
        columns = self.counts or self.probs
        table = read_columns(source, [self.item, *columns, *beside])
        items = self._matching(items or listed_items(table, self.item, source))
        are_counts = bool(self.counts)
        shares = read_shares(table, self.item, columns, are_counts, items, self.classes, source)
        return OwnData(items, shares)

    def _read_single_votes(
        self, source: Path | str, items: Items | None, beside: list[str]
    ) -> OwnData:
        if items is None and self.kind == "embeddings":
            if self.split_column:
                raise InputError(
                    "data.split_column needs data.inputs, a table with one row per embedding."
                )
            name = f"{self.embeddings}, whose row numbers are its items' ids,"
            items = numbered_items(len(self.mapped), name)
        label, annotator = str(self.label), self.annotator
        names = [self.item, label, *([annotator] if annotator else []), *beside]
        encoded = encode_columns(source, names)
        items = self._matching(items or items_of_votes(encoded, self.item, beside, source))
        table = read_single_votes(encoded, self.item, label, annotator, items, self.classes, source)
        if self.ordinal and not self.classes:
            _check_steps(table.class_names, source)
        return OwnData(items, table)

    def _matching(self, items: Items) -> Items:
        if self.kind == "embeddings" and len(items) != len(self.mapped):
            raise InputError(
                f"{self.embeddings} has {len(self.mapped)} rows and {items.source} has "
                f"{len(items)}; they must be the same items."
            )
        return items

    def _where(self, name: str) -> Path | str:
        """A file or folder below root; else, if it could be one, an id of the hub."""
        path = Path(self.root) / name
        if path.exists() or path.suffix in (".csv", ".parquet") or name.count("/") > 1:
            if not path.exists():
                raise InputError(
                    f"there is no {path}; data.root is {self.root}, and files are given relative "
                    "to it."
                )
            if is_endless(path):
                raise InputError(
                    f"{path} is a device or a pipe, and is read more than once; write the table "
                    "to a file."
                )
            if path.is_file() and path.suffix not in (".csv", ".parquet"):
                raise InputError(
                    f"{path} is neither .csv nor .parquet; write the table as one of these."
                )
            return path
        return name

    def shown(self, data: OwnData, image_side: int) -> Inputs:
        """The texts of the items with votes, or their images [N, 3, image_side, image_side]."""
        if self.kind not in ("text", "image"):
            raise InputError(
                f"the items of {self.votes} are ready embeddings; there are no texts or pictures "
                "of them to show."
            )
        words, codes = data.items.words(self.column)
        chosen = [words[code] for code in codes[data.table.voted]]
        if self.kind == "text":
            return chosen
        source = data.items.source
        if isinstance(source, str):
            raise InputError(
                f"{source} is on the hub, where data.image can name no files; have its "
                "table and its images here."
            )
        return read_images(chosen, source if source.is_dir() else source.parent, image_side)


def _only_one(options: Mapping[str, object], words: str) -> str:
    given = [name for name, value in options.items() if value]
    if len(given) != 1:
        named = " and ".join(f"data.{name}" for name in given) or "none of them"
        raise InputError(
            f"{named} {'are' if len(given) > 1 else 'is'} given; exactly one must be, of {words}."
        )
    return given[0]


def _check_steps(labels: Sequence[str], source: Path | str) -> None:
    """Labels that are ratings are numbers at equal distances; their order is then known, and none
    between them is missing.
    """
    try:
        steps = np.diff(np.array(labels, dtype=float))
    except ValueError:  # texts
        steps = np.array([np.nan])
    if not np.allclose(steps, steps[:1]):
        some = name_some([f"'{printed(label)}'" for label in labels])
        raise InputError(
            f"data.ordinal needs data.classes, all labels of {source} in their order, because "
            f"{some} are no numbers at equal distances."
        )
