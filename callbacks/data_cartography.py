"""Which items a network finds easy, ambiguous or hard while it learns, and whether those are the
items that people find so.
"""

import math
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from callbacks.cartography.figure import draw_data_map
from callbacks.cartography.records import copy_epochs, read_epochs, record_path, write_epoch
from callbacks.epochs.epoch_probe import EpochProbe
from callbacks.history import read_history
from callbacks.probe import ProbeResult
from core.errors import InputError
from core.ranks import from_first_rank, rank_and_ranks
from datamodules import VoteDataModule, VoteTable
from lightning_modules import AnnotatorClassifier
from lightning_modules.epoch_follower import EndedEpoch, EpochFollower
from metrics.cartography import DataMap, data_map, uncertainty_correlations
from metrics.per_item import map_values


class DataCartography(EpochProbe):
    """At the end of each epoch, notes what the model (in eval mode, on items without augmentation)
    says of each item; after a test, draws their map.

    Each epoch goes to `cartography_SPLIT.f32` as it ends (12 bytes an item), the map of all items
    to `cartography_SPLIT.parquet`. In results.json: mean confidence and variability, over all items
    and by stratum (NoHLV: unanimous votes, HLV: others), correctness, forgetting events, and
    Spearman's correlations with human uncertainty. Of several seeds together:
    `metrics.cartography.map_across_runs`.
    """

    def __init__(self, split: Literal["train", "val", "test"] = "train", last: int | None = None):
        """
        Args:
            split: Whose items.
            last: Map the last so many epochs; null for all of them. All are kept on disk either
                way.
        """
        if split not in ("train", "val", "test"):
            raise InputError(f"DataCartography: split is {split}; it must be train, val or test.")
        if last is not None and last < 1:
            raise InputError(
                f"DataCartography: last is {last}; it must be 1 epoch or more, or null for all "
                "epochs."
            )
        self.split, self.last = split, last

    @property
    def state_key(self) -> str:
        """One for each split, so that Lightning tells several apart."""
        return f"{type(self).__qualname__}{{'split': {self.split}, 'last': {self.last}}}"

    def follow(self, data: VoteDataModule, labels: VoteTable, folder: Path) -> EpochFollower:
        """What keeps each epoch's values of the split's items."""
        target = torch.from_numpy(labels.majority)
        items = len(data.rows(self.split))
        return EpochRecord(self.split, items, target, record_path(folder, self.split))

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """The map of all items, from the record of their epochs."""
        assert data.corpus is not None
        rows = np.sort(data.rows(self.split))
        result = from_first_rank(self._map(len(rows)) if rank_and_ranks()[0] == 0 else None)
        if not isinstance(result, DataMap):
            return ProbeResult(notes=[f"DataCartography: {result}"])
        (name, uncertainty), unanimous = (
            next(iter(data.human_uncertainties().items())),
            data.annotator_votes.unanimous[rows],
        )
        uncertainty = uncertainty[rows]
        kind = "cartography" if self.split == "train" else f"cartography_{self.split}"
        metrics = {
            f"{kind}_{name}": value
            for name, value in map_summary(result, uncertainty, unanimous).items()
        }
        undefined = [name for name, value in metrics.items() if math.isnan(value)]
        notes = [
            f"DataCartography: {name} is not defined, because one of the two is the same for all "
            "items."
            for name in undefined
        ]
        crowd = " (simulated annotators)" if data.simulated else ""
        when = f"the last {self.last} epochs" if self.last else "all epochs"
        title = f"{data.name}{crowd}: {self.split} items over {when}"
        picture = partial(draw_data_map, result, uncertainty, unanimous, title, name)
        table = item_table(rows, result, uncertainty, unanimous)
        file = f"cartography_{self.split}"
        return ProbeResult(
            {n: v for n, v in metrics.items() if n not in undefined},
            {file: picture},
            items={file: table},
            notes=notes,
        )

    def _map(self, items: int) -> DataMap | str:
        """The map, or why there is none."""
        if self.folder is None:
            return "there is no folder of a run, so there is no record of its epochs."
        path = record_path(self.folder, self.split)
        record, trained = read_epochs(path, items), read_history(self.folder)
        if not len(record):
            return (
                f"there is no {path.name} of this run's {items} {self.split} items; fit writes "
                "one where it is run with DataCartography."
            )
        if trained is not None and len(trained) != len(record):
            return (
                f"{path.name} holds the first {len(record)} epochs of {len(trained)}, because "
                "some were trained without DataCartography."
            )
        if len(record) < (self.last or 1):
            return (
                f"{path.name} holds {len(record)} epoch(s), fewer than the last {self.last} "
                "that are to be mapped."
            )
        result = data_map([record], self.last)
        if not np.isfinite(result.confidence).all():
            return (
                f"{path.name} holds predictions that are not finite numbers, because training "
                "diverged."
            )
        return result


class EpochRecord(EpochFollower):
    """Writes each epoch's `item_values`, with the likeliest label as target, in the order of item
    numbers.
    """

    def __init__(self, split: str, items: int, target: Tensor, path: Path):
        """
        Args:
            split: Whose items.
            items: How many it has.
            target: The likeliest label of each item of the whole table.
            path: The record.
        """
        self.splits, self.items, self.target, self.path = (split,), items, target, path

    def after_epoch(self, epoch: EndedEpoch) -> dict[str, float]:
        """Put the epoch in its place."""
        probs, annotator_probs, index = epoch.predictions(self.splits[0])
        values = map_values(probs, annotator_probs, self.target[index])[:, index.argsort()]
        if rank_and_ranks()[0] == 0:
            write_epoch(self.path, epoch.number, values.numpy())
        return {}

    def copy_record(self, folder: Path, epochs: int) -> None:
        """The first epochs, for a run that ends there."""
        copy_epochs(self.path, folder / self.path.name, self.items, epochs)


def map_summary(
    result: DataMap, uncertainty: np.ndarray, unanimous: np.ndarray
) -> dict[str, float]:
    """Means over items (a stratum without items has none) and correlations with human uncertainty,
    which are NaN where they are not defined.
    """
    summary = {
        "correctness": float(result.correctness.mean()),
        "forgetting_events": float(result.forgetting_events.mean()),
    }
    for suffix, mask in (
        ("", np.ones_like(unanimous)),
        ("_nohlv", unanimous),
        ("_hlv", ~unanimous),
    ):
        if mask.any():
            summary |= {
                f"{name}{suffix}": float(getattr(result, name)[mask].mean())
                for name in ("confidence", "variability")
            }
    return summary | uncertainty_correlations(result, uncertainty)


def item_table(
    rows: np.ndarray, result: DataMap, uncertainty: np.ndarray, unanimous: np.ndarray
) -> pa.Table:
    """One row per item: its number, what people said of it, and where it lies."""
    values = {name: column for name, column in result._asdict().items() if name != "between_runs"}
    return pa.table(
        {"index": rows, "unanimous": unanimous, "human_uncertainty": uncertainty, **values}
    )
