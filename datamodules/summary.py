"""What a dataset holds before any split, embedding or training, for `python cli.py describe`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from datamodules.votes.annotations import Annotations
from datamodules.votes.table import VoteTable


@dataclass(frozen=True)
class DatasetSummary:
    """The votes; and as far as it is known, who gave them, on what, and what is wrong with them."""

    votes: VoteTable  # of the items with votes
    items: Any  # the same items: a list of texts, a Tensor, or a dataset of single inputs
    ids: pa.Array | None = None  # of the same items; None where row numbers are all there is
    # ids of items without votes
    unvoted: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    annotations: Annotations | None = None  # where it is known who voted
    # rows of votes by someone who had voted on the item before
    repeated: np.ndarray = field(default_factory=lambda: np.empty(0, int))
    splits: dict[str, np.ndarray] | None = None  # rows of train, val and test, if files say so
    form: str = "counts of votes"  # what the votes were read from, in words
