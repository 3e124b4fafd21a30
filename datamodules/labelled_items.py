"""What predictions are judged by: votes, splits and ids of a dataset's items, without their inputs.

Nothing is embedded for it, and no picture of the user's own is opened.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from datamodules.custom.own_votes import OwnVotes
from datamodules.frozen import FrozenDataModule
from datamodules.vote_datamodule import VoteDataModule
from datamodules.votes.table import VoteTable


@dataclass(frozen=True)
class LabelledItems:
    """Items in the dataset's order."""

    name: str  # of the dataset
    class_names: tuple[str, ...]
    votes: VoteTable
    unanimous: np.ndarray  # whether annotators agree on the item
    splits: dict[str, np.ndarray]  # row numbers of train, val and test
    ids: pa.Array | None  # as texts; None where row numbers are all there is
    id_columns: tuple[str, ...]  # what a file may call its column of ids

    def id_texts(self) -> pa.Array:
        """The ids of all items, or their row numbers as texts."""
        if self.ids is not None:
            return self.ids
        return pa.array(np.arange(len(self.votes))).cast(pa.string())


def labelled_items(data: VoteDataModule) -> LabelledItems:
    """Those of a datamodule, split as a run with its options and seed would split them."""
    ids, id_columns = None, ("item", "index")
    if isinstance(data, OwnVotes):
        items, table = data.usable()
        votes, ids = table.votes, items.ids.take(pa.array(table.voted))
        id_columns = (data.own.item, "item")
        splits = data.split(votes)
    elif isinstance(data, FrozenDataModule):
        _, votes = data.read()
        splits = data.split(votes)
        if (published := data.item_ids()) is not None:
            ids = pa.array(published, pa.string())
    else:
        data.setup()
        assert data.corpus is not None
        votes, splits = data.corpus.votes, data.corpus.splits
    people = data.annotator_votes if data.corpus else votes
    names = data.class_names or tuple(map(str, range(data.num_classes)))
    return LabelledItems(data.name, names, votes, people.unanimous, splits, ids, id_columns)
