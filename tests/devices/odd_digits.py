"""Few digits, in numbers that neither two processes nor a batch divide."""

from datamodules import Digits
from datamodules.vote_datamodule import Corpus


class OddDigits(Digits):
    """97 training items, and 61 others of the embedded digits to validate and to test on."""

    def load(self) -> Corpus:
        corpus = super().load()
        corpus.splits = {
            name: rows[:: len(rows) // items][:items]
            for (name, rows), items in zip(corpus.splits.items(), (97, 61, 61), strict=True)
        }
        return corpus


class OneDigit(OddDigits):
    """One training item alone, so that every batch is a single item."""

    def load(self) -> Corpus:
        corpus = super().load()
        corpus.splits = {**corpus.splits, "train": corpus.splits["train"][:1]}
        return corpus
