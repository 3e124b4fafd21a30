"""Your own votes, in any of three forms, on texts, images or ready embeddings."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError, name_rows, name_some
from datamodules.corpus import Corpus
from datamodules.custom.own_files import OwnData, OwnFiles
from datamodules.custom.own_items import SPLITS
from datamodules.embedders import Embedder
from datamodules.embedders.embedder import Inputs
from datamodules.frozen import FrozenInThreeParts
from datamodules.memmap_inputs import MemmapInputs, moments_of, refuse_unusual
from datamodules.summary import DatasetSummary
from datamodules.votes.table import VoteTable

FORMS = {"label": "one row per vote", "counts": "counts of votes", "probs": "probabilities"}


class OwnVotes(FrozenInThreeParts):
    """Votes and items from files of your own.

    Which option is given says how they are read; nothing is guessed.

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
        ordinal: bool = False,
        root: str = ".",
        **kwargs,
    ):
        """
        Args:
            votes: A .csv or .parquet file, a folder of .parquet files (all below `root`), or the id
                of a dataset on the hub.
            item: The column of items' ids, in `votes` and in `inputs`.
            label: The column of labels, where every row is one vote.
            annotator: The column that says whose vote it is. Only checks need it; do give it.
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
            image_side: Width and height in pixels that images are brought to before embedding.
            split_column: A column that says train, val or test for each item, instead of
                `fractions`.
            leave_out_unvoted: Train without the items that have no vote; else they are an error.
            count_repeated: Count it as another vote if someone votes on an item again; else it is
                an error.
            simulated: Say so if the annotators are a simulation; results and reports then do, too.
            ordinal: Say so if the classes are in an order, as ratings are: scores of ordered
                classes then join. `classes` tells the order of labels that are no numbers.
            root: The folder that all these files are below.
        """
        super().__init__(embedder=embedder, root=root, **kwargs)  # pyright: ignore[reportArgumentType]
        names = tuple(map(str, classes))
        self.own = OwnFiles(
            root, votes, item, label, annotator, counts, probs, names,
            inputs, text, image, embedding, embeddings, split_column, ordinal,
        )  # fmt: skip
        kind = self.own.kind
        if (embedder is None) == (kind in ("text", "image")):
            raise InputError(
                f"data.{kind} needs data.embedder, for example "
                f"{'SentenceEmbedder' if kind == 'text' else 'EfficientNetLite0'}."
                if embedder is None
                else f"data.{kind} gives ready embeddings; leave data.embedder out."
            )
        if image_side < 1:
            raise InputError(f"data.image_side is {image_side}; it must be 1 or more pixels.")
        self.image_side, self.simulated, self.ordinal = image_side, simulated, ordinal
        self.leave_out_unvoted, self.count_repeated = leave_out_unvoted, count_repeated

    @property
    def num_classes(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As many as `class_names`; reads the files."""
        return len(self.class_names)

    @property
    def class_names(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """`classes` if given, else the labels or columns of the files, which are read for it."""
        return self._data.table.class_names

    @property
    def input_shape(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The length of one embedding, the embedder's or a ready one's."""
        return super().input_shape if self.embedder else (self._array.shape[1],)

    @property
    def items_source(self) -> str:
        """The file that holds the items themselves."""
        return str(Path(self.root) / (self.own.embeddings or self.own.inputs or self.own.votes))

    @property
    def split_source(self) -> str:
        """The file and column of the split, where `split_column` is given."""
        if not self.own.split_column:
            return super().split_source
        where = Path(self.root) / (self.own.inputs or self.own.votes)
        return f"the split in {where}, column {self.own.split_column},"

    def files(self) -> list[Path]:
        """All of the user's files; a dataset on the hub is not among them."""
        return self.own.present

    @property
    def embedder_name(self) -> str:
        """The embedder's own name, or where the ready embeddings came from."""
        return self.embedder.name if self.embedder else f"ready embeddings of {self.own.column}"

    @cached_property
    def _data(self) -> OwnData:
        items, table = self.own.read()
        # a run needs only the sums of the single votes
        return OwnData(items, replace(table, annotations=None))

    @cached_property
    def _array(self) -> np.ndarray:
        """Ready embeddings of all items, with or without votes."""
        own = self.own
        return own.mapped if own.embeddings else self._data.items.array(own.column)

    def usable(self) -> OwnData:
        """What can be trained on.

        Where the user has to decide something first, the error names the option to decide it by.
        """
        data = items, table = self._data
        if len(data.unvoted) and not self.leave_out_unvoted:
            some = items.ids.take(data.unvoted[:4]).to_pylist()
            raise InputError(
                f"{self.own.votes} has no vote on {len(data.unvoted)} of {len(items)} items "
                f"({name_some(some, len(data.unvoted))}); set "
                "data.leave_out_unvoted to true to train without such items."
            )
        if len(table.repeated) and not self.count_repeated:
            raise InputError(
                f"{self.own.votes} has votes of one {self.own.annotator} on one item again in "
                f"{name_rows(table.repeated)}; remove them, or set "
                "data.count_repeated to true to count them all."
            )
        return data

    def read(self) -> tuple[Inputs, VoteTable]:
        """Texts or images, and their votes; raises an `InputError` for ready embeddings."""
        data = self.usable()
        return self.own.shown(data, self.image_side), data.table.votes

    def prepare_data(self) -> None:
        """Embed texts or images once; ready embeddings need nothing."""
        if self.embedder:
            super().prepare_data()

    def load(self) -> Corpus:
        """Embeddings, votes and split; ready embeddings stay in their file."""
        if self.embedder:
            return super().load()
        items, table = self.usable()
        column = f"{items.source}, column {self.own.column},"
        refuse_unusual(self._array, self.own.embeddings or column)
        inputs = MemmapInputs(self._array, table.voted)
        corpus = Corpus(inputs, table.votes, self.split(table.votes))
        corpus = corpus.trained_on(self.train_items, self.seed)
        if self.standardize:
            self._moments = moments_of(inputs, corpus.splits["train"])
            corpus.inputs = MemmapInputs(self._array, table.voted, self._moments)
        return corpus

    def split(self, votes: VoteTable) -> dict[str, np.ndarray]:
        """By `split_column` if that is given, else by `fractions` and the seed."""
        if self.own.split_column is None:
            return super().split(votes)
        items, table = self._data
        part = items.splits(self.own.split_column)[table.voted]
        return {name: np.flatnonzero(part == number) for number, name in enumerate(SPLITS)}

    def original(self, rows: Sequence[int] | np.ndarray) -> list[str] | Tensor:
        """The texts or images of these items, rows of the vote table."""
        seen = self.own.shown(self._data, self.image_side)
        return seen[torch.as_tensor(rows)] if isinstance(seen, Tensor) else [seen[n] for n in rows]

    def ood_inputs(self, source: str, root: str) -> Tensor:
        """Images from elsewhere, embedded as this dataset's are; there must be an embedder."""
        if self.embedder is None:
            raise InputError(
                f"{source} holds images, but {self.own.votes} comes with ready embeddings; leave "
                "OODScores out."
            )
        return super().ood_inputs(source, root)

    def summarize(self) -> DatasetSummary:
        """With ids, single votes and what is doubtful about them, which training does not need."""
        data = items, table = self.own.read()
        vars(self)["_data"] = data  # so that the names of the classes need no second reading
        if self.embedder:
            shown = self.own.shown(data, self.image_side)
        else:
            shown = MemmapInputs(self._array, table.voted)
        return DatasetSummary(
            table.votes,
            shown,
            ids=items.ids.take(table.voted),
            unvoted=items.ids.take(data.unvoted),
            annotations=table.annotations,
            repeated=table.repeated,
            splits=self.split(table.votes) if self.own.split_column else None,
            form=FORMS[self.own.form],
        )
