"""soft-digits: handwritten digits with every annotator's doubts in their labels.

Without the published dataset a SIMULATED crowd judges a corpus that is built here.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from corpora.annotation.aggregation import CLASS_NAMES
from corpora.annotation.crowd_models import crowd_labels
from corpora.annotation.soft_digits_table import (
    LABELS,
    SIDE,
    SPLITS,
    SoftDigitsTable,
    read_soft_digits,
)
from datamodules.corpus import Corpus
from datamodules.datasets.simulated_soft_digits import judgements, stand_in
from datamodules.summary import DatasetSummary
from datamodules.vote_datamodule import VoteDataModule
from datamodules.votes.table import VoteTable


class SoftDigits(VoteDataModule):
    """The published dataset; without it, a stand-in with the labels of a SIMULATED crowd.

    The stand-in is a corpus of MNIST and interpolated digits.

    What a model is trained on (`targets`) and what it is judged by (`evaluate_against`) are chosen
    apart, by the same names: `original`, the labels that the images came with; `majority`, the
    likeliest human label; `equal` and `uncertainty`, the human soft labels in which an unsure
    weighs 1 or 1/2; `dawid_skene` and `mace`, where the dataset has them or crowd-kit can make
    them. There are eleven classes: ten digits and no digit.
    """

    num_classes = len(CLASS_NAMES)
    input_shape = (1, SIDE, SIDE)
    class_names = CLASS_NAMES
    simulated = True  # of an instance: whether its own data is
    pack_axes = ("delivery", "votes_per_item", "targets")

    def __init__(
        self,
        published: str | None = None,
        root: str = "data",
        targets: str = "uncertainty",
        evaluate_against: str = "uncertainty",
        source: str | None = None,
        fractions: tuple[float, float, float] | None = None,
        annotators: int = 6,
        crowd_seed: int = 0,
        **kwargs,
    ):
        """
        Args:
            published: A parquet file, a folder of them, or a dataset's id on the hub; null for the
                SIMULATED stand-in.
            root: The folder that holds `mnist`, for the stand-in, which is built in it once; what
                is absent is downloaded to it.
            targets: The labels to train on: original, majority, equal, uncertainty, dawid_skene or
                mace.
            evaluate_against: The labels of validation and test, by the same names; the default are
                people's own, original those of the sources.
            source: Only the images of this source (mnist, mukhoti; of the stand-in mnist,
                interpolated); null for all.
            fractions: Shares of train, validation and test, to split by the run's seed, stratified
                by class and entropy; null for the dataset's own split.
            annotators: How many simulated annotators judge each image of the stand-in; about 6
                people did.
            crowd_seed: Of the stand-in's crowd. It is apart from the run's seed, so that all runs
                see the same.
        """
        super().__init__(**kwargs)
        for option, name in (("targets", targets), ("evaluate_against", evaluate_against)):
            if name not in LABELS:
                raise InputError(f"data.{option} is {name}; it must be one of {', '.join(LABELS)}.")
        self.published, self.root, self.source, self.fractions = published, root, source, fractions
        self.targets, self.evaluate_against = targets, evaluate_against
        self.annotators, self.crowd_seed = annotators, crowd_seed
        self._table: SoftDigitsTable | None = None

    def files(self) -> list[Path]:
        """The published file or folder, if it is here and not on the hub."""
        return [Path(self.published)] if self.published and Path(self.published).exists() else []

    def summarize(self) -> DatasetSummary:
        """With the dataset's own split, unless `fractions` ask for another."""
        summary = super().summarize()
        if self.corpus is None or self.fractions is not None:
            return summary
        return replace(summary, splits=self.corpus.splits)

    @property
    def split_source(self) -> str:
        """The published file, where its own split is used."""
        if self.published and self.fractions is None:
            return f"the split in {self.published}"
        return super().split_source

    @property
    def table(self) -> SoftDigitsTable:
        """The chosen images with all their labels and uncertainties, row by row as in the corpus.

        It is read when it is first asked for.
        """
        if self._table is None:
            whole = self._whole()
            self._table = whole.take(self._rows_of_source(whole.source))
            self.simulated = whole.simulated
        return self._table

    def labels(self, name: str) -> VoteTable:
        """The labels of this name of all items; those that are absent are made, if they can be."""
        labels = self.table.labels
        if name not in labels and self.published:
            raise InputError(
                f"{self.published} has no column {LABELS[name]}, which {name} labels need; it has "
                f"{', '.join(labels)}."
            )
        if name not in labels:
            judged = judgements(self.root, self.annotators, self.crowd_seed)
            rows = self._rows_of_source(self._whole().source)
            probs = crowd_labels(judged, name, self.crowd_seed)[rows]
            source = f"the simulated crowd's {name} labels"
            labels[name] = VoteTable.from_probs(probs, source)
        return labels[name]

    def prepare_data(self) -> None:
        """Build the stand-in where it is needed and absent, in one process."""
        if not self.published:
            stand_in(self.root, self.annotators, self.crowd_seed)

    def load(self) -> Corpus:
        """Bytes in memory, normalised by the training images, with the labels to be judged by."""
        table, votes = self.table, self.labels(self.evaluate_against)
        splits = self._splits(table, votes)
        images = torch.from_numpy(table.images)[:, None]
        seen = images[torch.from_numpy(splits["train"])].double() / 255
        mean, std = (float(seen.mean()),), (float(seen.std()),)
        return Corpus(images, votes, splits, mean, std, scale=255)

    def training_votes(self, targets: str | None = None) -> VoteTable:
        """The labels that `targets` names."""
        return self.labels(targets or self.targets)

    @property
    def annotator_votes(self) -> VoteTable:
        """People's own labels, in which an unsure weighs 1/2, whatever models are judged by."""
        return self.labels("uncertainty")

    def other_labels(self) -> dict[str, VoteTable]:
        """`original` and `uncertainty`, but for the one that models are judged by already."""
        names = {"original", "uncertainty"} - {self.evaluate_against}
        return {name: self.labels(name) for name in sorted(names)}

    def statistics(self) -> dict[str, float]:
        """The rows of the paper's table of datasets."""
        annotators, original = self.annotator_votes, self.labels("original")
        same = annotators.majority == original.majority
        no_digit = annotators.majority == CLASS_NAMES.index("NaN")
        return {
            "NoHLV (%)": 100 * float(annotators.unanimous.mean()),
            "original label agreement (%)": 100 * float(same.mean()),
            "NaN (%)": 100 * float(no_digit.mean()),
            "mean uncertainty": float(self.table.human_uncert_mean.mean()),
            "unsure proportion": float(self.table.pct_ann_unsure.mean()),
        }

    def human_uncertainties(self) -> dict[str, np.ndarray]:
        """The annotators' own mean uncertainty, how many were unsure, then the entropy."""
        said = {
            "mean uncertainty": self.table.human_uncert_mean,
            "unsure proportion": self.table.pct_ann_unsure,
        }
        return said | super().human_uncertainties()

    def original(self, rows: Sequence[int] | np.ndarray) -> Tensor:
        """The digits as bytes, in three equal channels."""
        images = torch.from_numpy(self.table.images)[torch.as_tensor(rows), None]
        return images.expand(-1, 3, -1, -1)

    def _splits(self, table: SoftDigitsTable, votes: VoteTable) -> dict[str, np.ndarray]:
        if self.fractions is None:
            return {name: np.flatnonzero(table.split == name) for name in SPLITS}
        if len(self.fractions) != 3:
            raise InputError(
                f"data.fractions is {list(self.fractions)}; it must be three shares, of train, "
                "validation and test."
            )
        parts = votes.split(self.fractions, self.seed, entropy_bins=10)
        return dict(zip(SPLITS, parts, strict=True))

    def _rows_of_source(self, source: np.ndarray) -> np.ndarray:
        rows = np.flatnonzero(source == self.source) if self.source else np.arange(len(source))
        if not len(rows):
            raise InputError(
                f"data.source is {self.source}; this data has {', '.join(np.unique(source))}."
            )
        return rows

    def _whole(self) -> SoftDigitsTable:
        """Of all sources."""
        if self.published:
            return read_soft_digits(self.published)
        return _read_once(stand_in(self.root, self.annotators, self.crowd_seed))


# runs of a study differ in their seeds, and reading takes longer than a small network; the file of
# this name never changes
@cache
def _read_once(path: Path) -> SoftDigitsTable:
    return read_soft_digits(str(path))
