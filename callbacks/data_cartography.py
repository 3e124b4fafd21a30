"""Which items a network finds easy, ambiguous or hard while it learns, and whether those are the
items that people find so.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import torch
from lightning import LightningModule, Trainer
from torch import Tensor

from callbacks.cartography.figure import draw_data_map
from callbacks.cartography.records import copy_epochs, read_epochs, record_path, write_epoch
from callbacks.history import read_history
from callbacks.probe import Probe, ProbeResult
from core.errors import InputError
from core.ranks import from_first_rank, gather_over_ranks, rank_and_ranks
from datamodules import VoteDataModule, VoteTable
from lightning_modules import AnnotatorClassifier
from lightning_modules.preserve_state import preserve_state
from metrics.cartography import DataMap, data_map, uncertainty_correlations
from metrics.per_item import map_values

ITEMS = 512  # of one pass: there is no gradient, so more than a training batch fits


class DataCartography(Probe):
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

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert isinstance(pl_module, AnnotatorClassifier)
        data: VoteDataModule = trainer.datamodule  # pyright: ignore[reportAttributeAccessIssue]
        values = split_values(pl_module, data, data.rows(self.split), data.training_votes())
        if trainer.is_global_zero:
            write_epoch(
                record_path(Path(trainer.default_root_dir), self.split),
                trainer.current_epoch,
                values,
            )

    def follow(
        self, data: VoteDataModule, labels: VoteTable, folder: Path
    ) -> Callable[[int, Tensor], None]:
        """For a member of a pack that is trained on these labels: what takes its predictions of the
        split [N, K] at the end of each epoch.
        """
        rows = torch.from_numpy(data.rows(self.split))
        annotator_probs, order = data.annotator_probs[rows], rows.argsort()
        target = torch.from_numpy(labels.majority)[rows]
        path = record_path(folder, self.split)
        return lambda epoch, probs: write_epoch(
            path, epoch, map_values(probs, annotator_probs, target)[:, order].numpy()
        )

    def copy_record(self, data: VoteDataModule, source: Path, target: Path, epochs: int) -> None:
        """Give a run the record of a longer one that it is the beginning of."""
        copy_epochs(
            record_path(source, self.split),
            record_path(target, self.split),
            len(data.rows(self.split)),
            epochs,
        )

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
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


def split_values(
    classifier: AnnotatorClassifier, data: VoteDataModule, rows: np.ndarray, labels: VoteTable
) -> np.ndarray:
    """What a classifier says of these items, as `item_values` with the likeliest label as target,
    in the order of their numbers and over all ranks.
    """
    parts, target = [], torch.from_numpy(labels.majority)
    with preserve_state(classifier), torch.no_grad():
        for batch in data.evaluation_batches(rows, classifier.device, ITEMS):
            probs, annotator_probs, index = (values.cpu() for values in classifier.predict(batch))
            parts.append((index, map_values(probs, annotator_probs, target[index]).T))
    index, values = (gather_over_ranks(torch.cat(column)) for column in zip(*parts, strict=True))
    return values[index.argsort()].T.numpy()


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
