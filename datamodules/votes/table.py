"""The vote table: what annotators said about each item, checked once, and what follows from it."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy.special import entr

from core.errors import InputError, name_rows
from core.randomness import generator
from datamodules.votes.splitting import stratified_split

# Published probabilities are often rounded to three decimals; a row further than this from 1 is a
# mistake, not rounding.
SUM_TOLERANCE = 1e-3
MOST_VOTES = np.iinfo(np.int32).max  # of one item
# numbers that are worked on at once, so that temporary arrays stay small beside the table itself
BLOCK = 1 << 20


class VoteTable:
    """Votes of N items over K classes: integer counts, or only probabilities where that is all
    there is.

    >>> votes = VoteTable(counts=[[3, 1], [0, 4]])
    >>> votes.probs.tolist(), votes.majority.tolist(), votes.unanimous.tolist()
    ([[0.75, 0.25], [0.0, 1.0]], [0, 1], [False, True])
    """

    def __init__(self, counts, source: str = "the vote table"):
        """`source` names the file in error messages.

        Counts that are int32 already are kept as they are, without a copy.
        """
        table = _as_matrix(counts, source, "votes")
        check_counts(table, source)
        totals = table.sum(1, keepdims=True, dtype=np.float64)
        _reject(totals == 0, source, "no votes at all", "every item needs at least one vote")
        too_many = f"more than {MOST_VOTES:,} votes"
        _reject(totals > MOST_VOTES, source, too_many, "use VoteTable.from_probs")
        self.source = source
        self.counts: np.ndarray | None = table.astype(np.int32, copy=False)

    @classmethod
    def from_probs(cls, probs, source: str = "the probability table") -> "VoteTable":
        """A table of probabilities alone.

        It has no counts, so it can be sampled from but not cycled through.

        >>> VoteTable.from_probs([[0.5, 0.5]]).counts is None
        True
        """
        table = _as_matrix(probs, source, "probabilities").astype(np.float64)
        allowed = "they must lie between 0 and 1"
        _reject(~np.isfinite(table), source, "probabilities that are not numbers", allowed)
        outside = (table < 0) | (table > 1 + SUM_TOLERANCE)
        _reject(outside, source, "probabilities outside 0 to 1", allowed)
        sums = table.sum(1, keepdims=True)
        unequal, fault = np.abs(sums - 1) > SUM_TOLERANCE, "probabilities that do not sum to 1"
        _reject(unequal, source, fault, "every row must sum to 1")
        return cls._checked(None, table / sums, source)

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
        step = max(1, BLOCK // self.num_classes)
        for rows in (slice(start, start + step) for start in range(0, len(self), step)):
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

    def subsample(self, k: int, seed: int) -> "VoteTable":
        """As if each item had been shown to only k annotators: k independent draws from its
        distribution.

        >>> VoteTable(counts=[[30, 20], [50, 0]]).subsample(5, seed=0).counts.sum(1).tolist()
        [5, 5]
        """
        if not isinstance(k, int | np.integer) or not 1 <= k <= MOST_VOTES:
            raise InputError(
                f"votes per item is {k}; it must be a whole number from 1 to {MOST_VOTES:,}."
            )
        rng = generator(seed, "subsample", int(k))
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

    def split(self, fractions, seed: int, entropy_bins: int = 1) -> list[np.ndarray]:
        """Row numbers of each part: a function of the seed alone.

        Stratified by majority class and by bins of normalised entropy of equal width.
        """
        if entropy_bins < 1:
            raise InputError(
                f"the number of entropy bins to stratify by is {entropy_bins}; it must be at "
                "least 1."
            )
        # evenly spread votes fall into the last bin
        level = np.minimum((self.normalized_entropy * entropy_bins).astype(int), entropy_bins - 1)
        return stratified_split(self.majority * entropy_bins + level, fractions, seed)


def check_counts(table: np.ndarray, source: str) -> None:
    """Refuse what cannot be a number of votes. Items without any vote are let through."""
    allowed = "counts must be whole numbers of 0 or more"
    if table.dtype.kind == "f":
        _reject(~np.isfinite(table), source, "votes that are not numbers", allowed)
    _reject(table < 0, source, "negative votes", allowed)
    if table.dtype.kind == "f":
        allowed = "counts must be whole numbers; for probabilities use VoteTable.from_probs"
        _reject(table != np.floor(table), source, "fractional votes", allowed)


def _shares(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum(1, keepdims=True, dtype=np.int64)


def _as_matrix(values, source: str, what: str) -> np.ndarray:
    try:
        table = np.ascontiguousarray(values)
    except ValueError:
        raise InputError(
            f"{source} has rows of different lengths; every row needs one number per class."
        ) from None
    if table.dtype.kind not in "biuf":
        raise InputError(f"{source} holds {table.dtype} values; {what} must be numbers.")
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise InputError(
            f"{source} has shape {list(table.shape)}; {what} must be a table of at least one item "
            "and two classes."
        )
    return table


def _reject(bad: np.ndarray, source: str, fault: str, allowed: str) -> None:
    rows = np.flatnonzero(bad.any(1))
    if len(rows):
        raise InputError(f"{source} has {fault} in {name_rows(rows)}; {allowed}.")
