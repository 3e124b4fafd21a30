"""The vote table: what annotators said about each item, checked once, and what follows from it."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy.special import entr

from core.errors import InputError
from core.randomness import generator
from datamodules.votes.row_blocks import row_blocks, rows_at_once
from datamodules.votes.splitting import stratified_split
from datamodules.votes.table_checks import as_matrix, check_counts, not_numbers, reject, totals

# Published probabilities are often rounded to three decimals; a row further than this from 1 is a
# mistake, not rounding.
SUM_TOLERANCE = 1e-3
MOST_VOTES = np.iinfo(np.int32).max  # of one item


class VoteTable:
    """Votes of N items over K classes: integer counts, or only probabilities where that is all
    there is.

    >>> votes = VoteTable(counts=[[3, 1], [0, 4]])
    >>> votes.probs.tolist(), votes.majority.tolist(), votes.unanimous.tolist()
    ([[0.75, 0.25], [0.0, 1.0]], [0, 1], [False, True])
    """

    def __init__(self, counts, source: str = "the vote table"):
        """`source` names the file in error messages.

        Counts that are int32 already are kept as they are, without a copy, and looked at by blocks
        of rows: a memory-mapped file of more rows than memory holds will do.
        """
        table = as_matrix(counts, source, "votes")
        check_counts(table, source)
        fault, allowed = "no votes at all", "every item needs at least one vote"
        reject(table, lambda rows: totals(rows) == 0, source, fault, allowed)
        fault, allowed = f"more than {MOST_VOTES:,} votes", "use VoteTable.from_probs"
        reject(table, lambda rows: totals(rows) > MOST_VOTES, source, fault, allowed)
        self.source = source
        self.counts: np.ndarray | None = table.astype(np.int32, copy=False)

    @classmethod
    def from_probs(cls, probs, source: str = "the probability table") -> "VoteTable":
        """A table of probabilities alone.

        It has no counts, so it can be sampled from but not cycled through.

        >>> VoteTable.from_probs([[0.5, 0.5]]).counts is None
        True
        """
        table = as_matrix(probs, source, "probabilities").astype(np.float64)
        allowed = "they must lie between 0 and 1"
        reject(table, not_numbers, source, "probabilities that are not numbers", allowed)
        fault = "probabilities outside 0 to 1"
        reject(table, lambda p: (p < 0) | (p > 1 + SUM_TOLERANCE), source, fault, allowed)
        fault, allowed = "probabilities that do not sum to 1", "every row must sum to 1"
        reject(table, lambda p: np.abs(totals(p) - 1) > SUM_TOLERANCE, source, fault, allowed)
        return cls._checked(None, table / totals(table), source)

    @classmethod
    def _checked(
        cls, counts: np.ndarray | None, probs: np.ndarray | None, source: str
    ) -> "VoteTable":
        table = cls.__new__(cls)
        table.source, table.counts = source, counts
        if probs is not None:
            table.__dict__["probs"] = probs  # fills the cached property
        return table

    def __len__(self) -> int:
        return len(self.probs if self.counts is None else self.counts)

    def __repr__(self) -> str:
        return (
            f"VoteTable({len(self)} items, {self.num_classes} classes, "
            f"{'probabilities' if self.counts is None else 'counts'})"
        )

    @property
    def num_classes(self) -> int:
        """K, the number of columns; a class that nobody voted for counts, too."""
        return (self.probs if self.counts is None else self.counts).shape[1]

    @cached_property
    def probs(self) -> np.ndarray:
        """The annotator distribution of each item, float64 [N, K]."""
        assert self.counts is not None
        return _shares(self.counts)

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """`probs` by blocks of rows, for work that should not hold all of it.

        For 1,000,000 items of 100 classes it takes 800 MB.

        >>> votes = VoteTable(counts=[[3, 1], [0, 4]])
        >>> [(rows.start, probs.tolist()) for rows, probs in votes.blocks()]
        [(0, [[0.75, 0.25], [0.0, 1.0]])]
        """
        for rows in row_blocks(self.probs if self.counts is None else self.counts):
            yield rows, self.probs[rows] if self.counts is None else _shares(self.counts[rows])

    def float_probs(self) -> np.ndarray:
        """`probs` in float32, as losses and scores take them."""
        rounded = np.empty((len(self), self.num_classes), np.float32)
        for rows, probs in self.blocks():
            rounded[rows] = probs
        return rounded

    @cached_property
    def entropy(self) -> np.ndarray:
        """Entropy of each item's distribution, in nats.

        Summed in order of size, so that equal spreads tie exactly.
        """
        return np.concatenate([entr(np.sort(probs, axis=1)).sum(1) for _, probs in self.blocks()])

    @property
    def normalized_entropy(self) -> np.ndarray:
        """Entropy divided by log K: 0 where all agree, 1 where the votes are spread evenly."""
        return self.entropy / np.log(self.num_classes)

    @cached_property
    def majority(self) -> np.ndarray:
        """The most voted class of each item; of tied classes the one with the lowest number."""
        return (self.probs if self.counts is None else self.counts).argmax(1)

    @property
    def unanimous(self) -> np.ndarray:
        """Where all votes name one class (no human label variation, "NoHLV"); its complement is
        "HLV".
        """
        return ((self.probs if self.counts is None else self.counts) > 0).sum(1) == 1

    def high_disagreement(self, quantile: float = 0.9) -> np.ndarray:
        """Where entropy reaches its `quantile` over the table and is not zero.

        The papers do not state their cut.

        >>> VoteTable(counts=[[4, 0], [3, 1], [2, 2]]).high_disagreement(0.9).tolist()
        [False, False, True]
        """
        if not 0 <= quantile < 1:
            raise InputError(
                f"the high-disagreement quantile is {quantile}; it must be at least 0 and below 1."
            )
        return (self.entropy >= np.quantile(self.entropy, quantile)) & ~self.unanimous

    def subsample(self, k: int, seed: int, stream: str = "subsample") -> "VoteTable":
        """As if each item had been shown to only k annotators: k independent draws from its
        distribution.

        Draws of another `stream` have nothing to do with these.

        >>> VoteTable(counts=[[30, 20], [50, 0]]).subsample(5, seed=0).counts.sum(1).tolist()
        [5, 5]
        """
        if not isinstance(k, int | np.integer) or not 1 <= k <= MOST_VOTES:
            raise InputError(
                f"votes per item is {k}; it must be a whole number from 1 to {MOST_VOTES:,}."
            )
        rng = generator(seed, stream, int(k))
        counts = np.empty((len(self), self.num_classes), np.int32)
        for rows, probs in self.blocks():
            counts[rows] = rng.multinomial(k, probs)
        return self._checked(counts, None, f"{self.source}, {k} votes per item")

    def take(self, index) -> "VoteTable":
        """The rows `index`, in that order."""
        index = np.asarray(index)
        if self.counts is None:
            return self._checked(None, self.probs[index], self.source)
        return self._checked(self.counts[index], None, self.source)

    def block(self, start: int, stop: int) -> "VoteTable":
        """The rows from `start` up to `stop`, without a copy.

        >>> VoteTable(counts=[[3, 1], [0, 4], [1, 1]]).block(1, 3).counts.tolist()
        [[0, 4], [1, 1]]
        """
        if self.counts is None:
            return self._checked(None, self.probs[start:stop], self.source)
        return self._checked(self.counts[start:stop], None, self.source)

    def votes_before(self, row: int) -> int:
        """How many votes all rows before this one have together.

        All counts are summed once; then it takes no longer for late rows than for early ones.

        >>> VoteTable(counts=[[3, 1], [0, 4], [1, 1]]).votes_before(2)
        8
        """
        assert self.counts is not None
        step = rows_at_once(self.num_classes)
        whole_blocks = self._block_votes[: row // step].sum() if row >= step else 0
        return int(whole_blocks + self.counts[row - row % step : row].sum(dtype=np.int64))

    @cached_property
    def _block_votes(self) -> np.ndarray:
        assert self.counts is not None
        return np.array([self.counts[rows].sum(dtype=np.int64) for rows in row_blocks(self.counts)])

    def split(self, fractions, seed: int, entropy_bins: int = 1) -> list[np.ndarray]:
        """Row numbers of each part: a function of the seed alone.

        Stratified by majority class and by bins of normalised entropy of equal width.
        """
        return stratified_split(self.strata(entropy_bins), fractions, seed)

    def strata(self, entropy_bins: int) -> np.ndarray:
        """A number for each item that those of equal majority class and like entropy share."""
        if entropy_bins < 1:
            raise InputError(
                f"the number of entropy bins to stratify by is {entropy_bins}; it must be at "
                "least 1."
            )
        # evenly spread votes fall into the last bin
        level = np.minimum((self.normalized_entropy * entropy_bins).astype(int), entropy_bins - 1)
        return self.majority * entropy_bins + level


def _shares(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum(1, keepdims=True, dtype=np.int64)
