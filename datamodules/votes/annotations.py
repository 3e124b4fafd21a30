"""Single votes as three columns of numbers, and how they become a table of counts."""

from typing import NamedTuple

import numpy as np

AT_ONCE = 1 << 20  # votes that are worked on at once


class Annotations(NamedTuple):
    """Who said what: one entry of each array per vote."""

    item: np.ndarray  # row number of the item
    label: np.ndarray  # class number
    annotator: np.ndarray  # number of the annotator
    names: list[str]  # of annotators, by number

    def counts(self, items: int, classes: int) -> np.ndarray:
        """The votes as a table of counts, int32 [items, classes]; it no longer says whose."""
        return count_votes(self.item, self.label, items, classes)


def count_votes(item: np.ndarray, label: np.ndarray, items: int, classes: int) -> np.ndarray:
    """How many votes each item got for each class, int32 [items, classes].

    >>> count_votes(np.array([0, 1, 0]), np.array([1, 0, 1]), items=2, classes=2)
    array([[0, 2],
           [1, 0]], dtype=int32)
    """
    counts = np.zeros(items * classes, np.int32)
    for start in range(0, len(item), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        np.add.at(counts, item[part].astype(np.int64) * classes + label[part], 1)
    return counts.reshape(items, classes)


def repeated_votes(item: np.ndarray, annotator: np.ndarray) -> np.ndarray:
    """The rows of votes by someone who has voted on the same item in an earlier row.

    >>> repeated_votes(np.array([0, 1, 0, 0]), np.array([7, 7, 7, 8]))
    array([2])
    """
    num_annotators = int(annotator.max()) + 1
    ordered = _pairs(item, annotator, num_annotators)
    # in place, and made anew below in the rare case: pairs of 20,000,000 votes take 160 MB
    ordered.sort()
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    if len(twice) == 0:
        return np.empty(0, np.int64)
    key = _pairs(item, annotator, num_annotators)
    rows = np.flatnonzero(np.isin(key, twice))
    _, first = np.unique(key[rows], return_index=True)
    return np.delete(rows, first)


def _pairs(item: np.ndarray, annotator: np.ndarray, num_annotators: int) -> np.ndarray:
    key = item.astype(np.int64)
    key *= num_annotators
    key += annotator
    return key
