"""POPQUORN's politeness ratings: e-mails, each judged from 1 to 5 by about seven people.

Pei and Jurgens 2023.
"""

from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from core.errors import InputError
from datamodules.embedders import Embedder, SentenceEmbedder
from datamodules.frozen import FrozenInThreeParts
from datamodules.io.files import PublishedFile, find, sha256
from datamodules.io.tables import read_table, refuse
from datamodules.summary import DatasetSummary
from datamodules.votes.annotations import Annotations
from datamodules.votes.table import VoteTable

COLUMNS = ("instance_id", "user_id", "text", "politeness")
# the class of each; the file writes them as 4.0
SCORES = {form: score - 1 for score in range(1, 6) for form in (str(score), f"{score}.0")}


class Ratings(NamedTuple):
    """Who said what: one entry of each array per rating."""

    item: np.ndarray  # row number of the item
    annotator: np.ndarray  # the published id
    label: np.ndarray  # 0 to 4 for the scores 1 to 5


class POPQUORN(FrozenInThreeParts):
    """Politeness, where every score is a vote for one of 5 classes and `ratings` says whose.

    The file is `popquorn/politeness_rating/raw_data.csv` below `root`. Items are in the order of
    their ids, whatever the order of the file.
    """

    num_classes = 5
    ordinal = True
    class_names = ("1 (least polite)", "2", "3", "4", "5 (most polite)")
    # No checksum of the authors' own file is known here: a file is told by its totals, those of the
    # rebuilt one, and the rebuilt one by its digest.
    FILE: ClassVar = PublishedFile(
        "popquorn/politeness_rating/raw_data.csv",
        None,
        "https://github.com/Jiaxin-Pei/Potato-Prolific-Dataset/raw/main/dataset/politeness_rating/raw_data.csv",
    )
    # the same ratings without the raters' demographics and with plain numbers as their ids
    KNOWN: ClassVar = {
        "25edd36cc687676ba974271d3af5f36eb78586566e65b046f6d98261a3bc8ae8": "rebuilt from a file of the authors with a row per item",  # noqa: E501
    }
    TOTALS: ClassVar = (25_042, 3_718, 506)  # ratings, items, raters

    def __init__(self, embedder: Embedder = SentenceEmbedder(), **kwargs):
        """
        Args:
            embedder: A class of datamodules.embedders by name, with its own options; the paper used
                text-embedding-3-large (OpenAIEmbedder).
        """
        super().__init__(embedder=embedder, **kwargs)
        self.ratings = Ratings(*(np.empty(0, int) for _ in range(3)))  # filled by setup

    def files(self) -> list[Path]:
        """The raw file, if it is there: no checksum of the authors' own is known."""
        path = Path(self.root) / self.FILE.path
        return [path] if path.exists() else []

    def read(self) -> tuple[list[str], VoteTable]:
        """The texts and their votes; fills `ratings`, too."""
        path = find(self.root, self.FILE)
        texts, self.ratings = read_ratings(path)
        if sha256(path) not in self.KNOWN:
            self._check_totals(path)
        counts = np.zeros((len(texts), self.num_classes), int)
        np.add.at(counts, (self.ratings.item, self.ratings.label), 1)
        return texts, VoteTable(counts, source=str(path))

    def item_ids(self) -> list[str]:
        """The instance_ids, in the order that `read` has them in."""
        ids = read_table(find(self.root, self.FILE), COLUMNS[:1])[COLUMNS[0]]
        return np.unique(np.array(ids, dtype=object)).tolist()

    def summarize(self) -> DatasetSummary:
        """With the single ratings and who gave them."""
        items, votes = self.read()
        names, who = np.unique(self.ratings.annotator, return_inverse=True)
        single = Annotations(self.ratings.item, self.ratings.label, who, names.tolist())
        return DatasetSummary(votes, items, annotations=single, form="one row per vote")

    def _check_totals(self, path: Path) -> None:
        item, who, _ = self.ratings
        result = (len(item), len(np.unique(item)), len(np.unique(who)))
        if result != self.TOTALS:
            raise InputError(
                "{} holds {:,} ratings of {:,} items by {:,} people, but {:,} of {:,} by {:,} "
                "were published; it was cut short or altered, "
                "so delete it to have it downloaded again.".format(path, *result, *self.TOTALS)
            )


def read_ratings(path: Path) -> tuple[list[str], Ratings]:
    """The text of each item, in the order of their ids, and every rating.

    The raw file has one row per rating.
    """
    table = read_table(path, COLUMNS)
    ids, raters, texts, scores = (np.array(table[column], dtype=object) for column in COLUMNS)
    for column, values in zip(COLUMNS, (ids, raters, texts, scores), strict=True):
        empty = np.flatnonzero([not value.strip() for value in values])
        refuse(empty, path, f"no {column}", "every rating needs one")
    label = np.array([SCORES.get(score.strip(), -1) for score in scores])
    fault, allowed = "politeness outside the scale", "every rating must be 1, 2, 3, 4 or 5"
    refuse(np.flatnonzero(label < 0), path, fault, allowed)
    _, first, item = np.unique(ids, return_index=True, return_inverse=True)
    other = np.flatnonzero(texts != texts[first][item])
    fault = "another text than before under the same instance_id"
    refuse(other, path, fault, "two items must not share an id")
    _, whose = np.unique(raters, return_inverse=True)
    _, once = np.unique(np.stack([item, whose]), axis=1, return_index=True)
    again = np.setdiff1d(np.arange(len(item)), once)
    fault = "a second rating of one item by the same user_id"
    refuse(again, path, fault, "each person has one vote on an item")
    return texts[first].tolist(), Ratings(item, raters.astype(str), label)
