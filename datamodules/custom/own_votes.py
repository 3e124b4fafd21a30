"""Your own votes: a table of what annotators said, in any of three forms, on texts, images or ready
embeddings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from core.bounded_files import is_endless
from core.errors import InputError, name_rows, name_some
from datamodules.custom.own_items import (
    SPLITS,
    Items,
    items_of_votes,
    listed_items,
    numbered_items,
    read_images,
)
from datamodules.custom.own_table import OwnTable, read_shares, read_single_votes
from datamodules.embedders import Embedder
from datamodules.embedders.embedder import Inputs
from datamodules.frozen import FrozenInThreeParts
from datamodules.io.arrow_tables import read_columns
from datamodules.io.dictionary_encoding import encode_columns
from datamodules.memmap_inputs import MemmapInputs, memmap_array, moments_of, refuse_unusual
from datamodules.summary import DatasetSummary
from datamodules.vote_datamodule import Corpus
from datamodules.votes.table import VoteTable


class _Found(NamedTuple):
    items: Items
    table: OwnTable


class OwnVotes(FrozenInThreeParts):
    """Votes and items from files of your own; which option is given says how they are read, and
    nothing is guessed.

    Votes: `label` for one row per vote, `counts` or `probs` for one row per item. Items: `text` or
    `image` (embedded by `embedder`), `embedding` (a column of ready ones) or `embeddings` (a file
    of them). Items come in the order of `inputs`, else of a table with one row per item, else of
    their ids.
    """

    below_root = ("votes", "inputs", "embeddings")  # options that name files there

    def __init__(
        self,
        votes: str,
        item: str,
        label: str | None = None,
        annotator: str | None = None,
        counts: tuple[str, ...] = (),
        probs: tuple[str, ...] = (),
        classes: tuple[str | int, ...] = (),
        inputs: str | None = None,
        text: str | None = None,
        image: str | None = None,
        embedding: str | None = None,
        embeddings: str | None = None,
        embedder: Embedder | None = None,
        image_side: int = 224,
        split_column: str | None = None,
        leave_out_unvoted: bool = False,
        count_repeated: bool = False,
        simulated: bool = False,
        root: str = ".",
        **kwargs,
    ):
        """
        Args:
            votes: A .csv or .parquet file, a folder of .parquet files (all below `root`), or the id
                of a dataset on the hub.
            item: The column of items' ids, in `votes` and in `inputs`.
            label: The column of labels, where every row is one vote.
            annotator: The column that says whose vote it is. Needed for nothing but checks, and
                worth giving.
            counts: Columns of vote counts, one for each class; or the one column that holds them as
                lists. Every row is an item.
            probs: The same for probabilities.
            classes: Names of the classes in their order. By default the labels that occur (numbers
                by size, else texts in their order), or the names of the columns.
            inputs: A table like `votes` with one row per item, where the items' texts, images or
                embeddings are not beside the votes.
            text: The column of texts.
            image: The column of paths of images, relative to the folder of their table. Held in
                memory as image_side x image_side x 3 bytes each.
            embedding: The column of ready embeddings, as lists; of a table with one row per item.
            embeddings: A .npy or .safetensors file of ready embeddings [items, features], below
                `root`, which is not read but mapped into memory. Its rows are those of `inputs`;
                without that, those of `votes` if every row is an item, else items' ids are its row
                numbers.
            embedder: A class of datamodules.embedders by name, for text or image.
            image_side: Every image is brought to this width and height, in pixels, before it is
                embedded.
            split_column: A column that says train, val or test for each item, instead of
                `fractions`.
            leave_out_unvoted: Train without the items that have no vote; else they are an error.
            count_repeated: Count it as another vote if someone votes on an item again; else it is
                an error.
            simulated: Say so if the annotators are a simulation; results and reports then do, too.
            root: The folder that all these files are below.
        """
        super().__init__(embedder=embedder, root=root, **kwargs)  # pyright: ignore[reportArgumentType]
        given = {"label": label, "counts": counts, "probs": probs}
        self.form = _only_one(given, "label (one row per vote), counts or probs")
        shown = {"text": text, "image": image, "embedding": embedding, "embeddings": embeddings}
        self.kind = _only_one(shown, "text, image, embedding or embeddings")
        if (embedder is None) == (self.kind in ("text", "image")):
            raise InputError(
                f"data.{self.kind} needs data.embedder, for example "
                f"{'SentenceEmbedder' if self.kind == 'text' else 'EfficientNetLite0'}."
                if embedder is None
                else f"data.{self.kind} gives ready embeddings; leave data.embedder out."
            )
        if annotator is not None and label is None:
            raise InputError(
                f"data.annotator is {annotator}; only with data.label, one row per vote, can "
                "there be one."
            )
        if embedding is not None and label is not None and inputs is None:
            raise InputError(
                "data.embedding needs data.inputs, a table with one row per item; rows of "
                "data.votes are votes here."
            )
        if image_side < 1:
            raise InputError(f"data.image_side is {image_side}; it must be 1 or more pixels.")
        self.votes, self.item, self.label, self.annotator, self.counts, self.probs = (
            votes,
            item,
            label,
            annotator,
            counts,
            probs,
        )
        self.classes, self.inputs, self.column, self.embeddings = (
            tuple(map(str, classes)),
            inputs,
            shown[self.kind],
            embeddings,
        )
        self.image_side, self.split_column, self.simulated = image_side, split_column, simulated
        self.leave_out_unvoted, self.count_repeated = leave_out_unvoted, count_repeated

    @property
    def num_classes(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.class_names)

    @property
    def class_names(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._found.table.class_names

    @property
    def input_shape(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return super().input_shape if self.embedder else (self._array.shape[1],)

    @property
    def items_source(self) -> str:
        return str(Path(self.root) / (self.embeddings or self.inputs or self.votes))

    @property
    def split_source(self) -> str:
        where = Path(self.root) / (self.inputs or self.votes)
        return (
            f"the split in {where}, column {self.split_column},"
            if self.split_column
            else super().split_source
        )

    def files(self) -> list[Path]:
        named = (
            Path(self.root) / name for name in (self.votes, self.inputs, self.embeddings) if name
        )
        return [path for path in named if path.exists()]

    @property
    def embedder_name(self) -> str:
        return self.embedder.name if self.embedder else f"ready embeddings of {self.column}"

    @cached_property
    def _found(self) -> _Found:
        result = self._read_files()
        # a run needs only their sums
        return result._replace(table=replace(result.table, annotations=None))

    @cached_property
    def _array(self) -> np.ndarray:
        """Ready embeddings of all items, with or without votes."""
        if self.embeddings is not None:
            return memmap_array(Path(self.root) / self.embeddings)
        return self._found.items.array(str(self.column))

    def _read_files(self) -> _Found:
        source, beside = (
            self._where(self.votes),
            [] if self.kind == "embeddings" else [str(self.column)],
        )
        beside += [self.split_column] if self.split_column else []
        items = None
        if self.inputs is not None:
            where = self._where(self.inputs)
            items, beside = (
                listed_items(read_columns(where, [self.item, *beside]), self.item, where),
                [],
            )
        if self.form != "label":
            columns = self.counts or self.probs
            table = read_columns(source, [self.item, *columns, *beside])
            items = self._matching(items or listed_items(table, self.item, source))
            return _Found(
                items,
                read_shares(
                    table, self.item, columns, bool(self.counts), items, self.classes, source
                ),
            )
        names = [self.item, str(self.label), *([self.annotator] if self.annotator else [])]
        if items is None and self.kind == "embeddings":
            if self.split_column:
                raise InputError(
                    "data.split_column needs data.inputs, a table with one row per embedding."
                )
            items = numbered_items(
                len(self._array), f"{self.embeddings}, whose row numbers are its items' ids,"
            )
        encoded = encode_columns(source, [*names, *beside])
        items = self._matching(items or items_of_votes(encoded, self.item, beside, source))
        return _Found(
            items,
            read_single_votes(
                encoded, self.item, str(self.label), self.annotator, items, self.classes, source
            ),
        )

    def _matching(self, items: Items) -> Items:
        if self.kind == "embeddings" and len(items) != len(self._array):
            raise InputError(
                f"{self.embeddings} has {len(self._array)} rows and {items.source} has "
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

    def _usable(self) -> _Found:
        """What can be trained on; what must be decided first is an error that names the option to
        decide it by.
        """
        items, table = result = self._found
        if len(table.voted) < len(items) and not self.leave_out_unvoted:
            raise InputError(
                f"{self.votes} has no vote on {_unvoted(items, table)}; set "
                "data.leave_out_unvoted to true to train without such items."
            )
        if len(table.repeated) and not self.count_repeated:
            raise InputError(
                f"{self.votes} has votes of one {self.annotator} on one item again in "
                f"{name_rows(table.repeated)}; remove them, or set "
                "data.count_repeated to true to count them all."
            )
        return result

    def read(self) -> tuple[Inputs, VoteTable]:
        items, table = self._usable()
        return self._shown(items, table), table.votes

    def _shown(self, items: Items, table: OwnTable) -> Inputs:
        """The texts or images of items with votes."""
        if self.kind not in ("text", "image"):
            raise InputError(
                f"the items of {self.votes} are ready embeddings; there are no texts or pictures "
                "of them to show."
            )
        words, codes = items.words(str(self.column))
        chosen = [words[code] for code in codes[table.voted]]
        if self.kind == "text":
            return chosen
        if isinstance(items.source, str):
            raise InputError(
                f"{items.source} is on the hub, where data.image can name no files; have its "
                "table and its images here."
            )
        return read_images(
            chosen, items.source if items.source.is_dir() else items.source.parent, self.image_side
        )

    def prepare_data(self) -> None:
        if self.embedder:
            super().prepare_data()

    def load(self) -> Corpus:
        if self.embedder:
            return super().load()
        items, table = self._usable()
        refuse_unusual(self._array, self.embeddings or f"{items.source}, column {self.column},")
        inputs, splits = MemmapInputs(self._array, table.voted), self.split(table.votes)
        if self.standardize:
            self._moments = moments_of(inputs, splits["train"])
            inputs = MemmapInputs(self._array, table.voted, self._moments)
        return Corpus(inputs, table.votes, splits)

    def split(self, votes: VoteTable) -> dict[str, np.ndarray]:
        if self.split_column is None:
            return super().split(votes)
        items, table = self._found
        part = items.splits(self.split_column)[table.voted]
        return {name: np.flatnonzero(part == number) for number, name in enumerate(SPLITS)}

    def original(self, rows: Sequence[int] | np.ndarray) -> list[str] | Tensor:
        shown = self._shown(*self._found)
        return (
            shown[torch.as_tensor(rows)]
            if isinstance(shown, Tensor)
            else [shown[row] for row in rows]
        )

    def ood_inputs(self, source: str, root: str) -> Tensor:
        if self.embedder is None:
            raise InputError(
                f"{source} holds images, but {self.votes} comes with ready embeddings; leave "
                "OODScores out."
            )
        return super().ood_inputs(source, root)

    def summarize(self) -> DatasetSummary:
        items, table = self._read_files()
        # so that the names of the classes need no second reading
        vars(self)["_found"] = _Found(items, table)
        shown = (
            self._shown(items, table) if self.embedder else MemmapInputs(self._array, table.voted)
        )
        ids = items.ids.take(table.voted)
        unvoted = np.setdiff1d(np.arange(len(items)), table.voted)
        form = {"label": "one row per vote", "counts": "counts of votes", "probs": "probabilities"}[
            self.form
        ]
        splits = self.split(table.votes) if self.split_column else None
        return DatasetSummary(
            table.votes,
            shown,
            ids,
            items.ids.take(unvoted),
            table.annotations,
            table.repeated,
            splits,
            form,
        )


def _unvoted(items: Items, table: OwnTable) -> str:
    rows = np.setdiff1d(np.arange(len(items)), table.voted)
    return (
        f"{len(rows)} of {len(items)} items "
        f"({name_some(items.ids.take(rows[:4]).to_pylist(), len(rows))})"
    )


def _only_one(options: Mapping[str, object], words: str) -> str:
    given = [name for name, value in options.items() if value]
    if len(given) != 1:
        named = " and ".join(f"data.{name}" for name in given) or "none of them"
        raise InputError(
            f"{named} {'are' if len(given) > 1 else 'is'} given; exactly one must be, of {words}."
        )
    return given[0]
