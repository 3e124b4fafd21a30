"""`predict` as a table: one row per item with the model's and the annotators' distributions and
entropies.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor
from torchmetrics import Metric

from callbacks.results import output_folder
from core.atomic_io import open_atomically
from core.errors import InputError, name_rows
from datamodules.io.tables import MOST_ROWS, refuse_too_many_rows
from metrics import per_item

WHO = ("model", "annotators")
GROUP = 1 << 19  # numbers of each kind that are written at once
ROUNDING = 1e-4  # of sums over up to thousands of classes, in single precision


class _Predictions(Metric):
    """Every item's prediction and number, over all ranks, as they come."""

    full_state_update = False
    probs: list[Tensor]
    index: list[Tensor]

    def __init__(self):
        super().__init__()
        self.add_state("probs", [], dist_reduce_fx="cat")
        self.add_state("index", [], dist_reduce_fx="cat")

    def update(self, probs: Tensor, index: Tensor) -> None:
        """Keep a batch."""
        self.probs.append(probs.detach())
        self.index.append(index)

    def compute(self) -> Any:
        """All batches as they came, not joined to one more copy; of several ranks, one part."""
        states = (self.probs, self.index)
        return tuple([state] if isinstance(state, Tensor) else state for state in states)


class PredictionTable(Callback):
    """Writes `predictions.parquet`: index, split, model_0.., annotators_0.., both entropies,
    predicted and majority class.
    """

    changes_training = False

    def __init__(self):
        self._items = _Predictions()

    def on_predict_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin with no items."""
        self._items = _Predictions().to(pl_module.device)

    def on_predict_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch,
        batch_idx,
        dataloader_idx=0,
    ) -> None:
        """Keep what was predicted."""
        self._items.update(outputs.probs, outputs.index)

    def on_predict_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the items of all ranks."""
        probs, index = self._items.compute()
        if not trainer.is_global_zero:
            return
        data, folder = trainer.datamodule, output_folder(trainer)  # pyright: ignore[reportAttributeAccessIssue]
        annotator_probs = data.annotator_probs
        path = write_predictions(folder, probs, annotator_probs, index, data.corpus.splits)
        print(f"{sum(map(len, index))} of {len(annotator_probs)} items written to {path}")


def write_predictions(
    folder: Path,
    probs: Tensor | Sequence[Tensor],
    annotator_probs: Tensor,
    index: Tensor | Sequence[Tensor],
    splits: dict[str, np.ndarray],
) -> Path:
    """`predictions.parquet` in a run's folder, in the order of the items.

    They are written in groups of rows, so that only a group at a time is held as a table.

    Args:
        folder: Of the run.
        probs: Predictions [n, K], or those of each batch.
        annotator_probs: Of all items of the dataset, by their numbers.
        index: The numbers of the items that were predicted, or those of each batch.
        splits: The numbers of each split's items.
    """
    model, numbers = (
        [parts.cpu()] if isinstance(parts, Tensor) else [part.cpu() for part in parts]
        for parts in (probs, index)
    )
    items, path = torch.cat(numbers), folder / "predictions.parquet"
    order = items.argsort()
    with open_atomically(path) as stream, ExitStack() as closing:
        writer = None
        for rows in order.split(max(1, GROUP // model[0].shape[1])):
            people = annotator_probs[items[rows].to(annotator_probs.device)].cpu()
            table = prediction_table(_rows(model, rows), people, items[rows], splits)
            if writer is None:
                writer = closing.enter_context(pq.ParquetWriter(stream, table.schema))
            writer.write_table(table)
    return path


def _rows(parts: Sequence[Tensor], rows: Tensor) -> Tensor:
    """Rows of the table that the parts would make together."""
    ends = torch.tensor([len(part) for part in parts]).cumsum(0)
    part_of = torch.searchsorted(ends, rows, right=True)
    chosen = parts[0].new_empty(len(rows), *parts[0].shape[1:])
    for number in part_of.unique().tolist():
        here = part_of == number
        chosen[here] = parts[number][rows[here] - (ends[number] - len(parts[number]))]
    return chosen


def prediction_table(
    probs: Tensor, target_probs: Tensor, index: Tensor, splits: dict[str, np.ndarray]
) -> pa.Table:
    """The table itself. An item that serves for validation and test alike is called test.

    >>> model, people, index = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.5, 0.5]]), [0]
    >>> table = prediction_table(model, people, torch.tensor(index), {"test": np.array(index)})
    >>> table.column_names
    ['index', 'split', 'model_0', 'model_1', 'annotators_0', 'annotators_1', 'model_entropy',
    'annotator_entropy', 'predicted', 'majority']
    """
    highest = max(int(index.max()), *(int(rows.max(initial=0)) for rows in splits.values()))
    split = np.full(1 + highest, "", dtype="<U5")
    for name in ("train", "val", "test"):
        split[splits.get(name, np.array([], dtype=int))] = name
    columns = {"index": index, "split": split[index.numpy()]}
    columns |= {f"model_{k}": probs[:, k] for k in range(probs.shape[1])}
    columns |= {f"annotators_{k}": target_probs[:, k] for k in range(probs.shape[1])}
    columns |= {
        "model_entropy": per_item.entropy(probs),
        "annotator_entropy": per_item.entropy(target_probs),
    }
    columns |= {"predicted": probs.argmax(1), "majority": target_probs.argmax(1)}
    return pa.table(
        {
            name: values.numpy() if isinstance(values, torch.Tensor) else values
            for name, values in columns.items()
        }
    )


def read_predictions(folder: Path, split: str) -> pa.Table:
    """What `predict` wrote of a run's items of this split: every item once, with distributions of
    model and annotators. Anything else is refused.
    """
    path = folder / "predictions.parquet"
    try:
        refuse_too_many_rows(pq.read_metadata(path).num_rows, path)
        table = pq.read_table(path, filters=[("split", "=", split)])
        table.validate(full=True)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read; run predict again.") from error
    names = table.column_names
    numbers = ["index", *(f"{who}_{k}" for who in WHO for k in range(number_of_classes(table)))]
    if number_of_classes(table) < 2 or not all(
        names.count(name) == 1 and _is_number(table.schema.field(name).type) for name in numbers
    ):
        raise InputError(f"{path} has other columns than predictions have; run predict again.")
    if any(table[name].null_count for name in numbers):
        raise InputError(f"{path} has places without a value; run predict again.")
    index = table["index"].to_numpy()
    whole = pa.types.is_integer(table["index"].type)
    if not whole or not len(index) or index.min() < 0 or index.max() > MOST_ROWS:
        raise InputError(
            f"{path} has no whole numbers of {split} items in its column index; run predict again."
        )
    if len(np.unique(index)) < len(index):
        raise InputError(f"{path} has an item of {split} more than once; run predict again.")
    for who in WHO:
        bad = np.flatnonzero(~are_distributions(class_probs(table, who).astype(np.float64)))
        if len(bad):
            raise InputError(
                f"{path} has no distribution over classes in {who}_0 and so on for {split} "
                f"{name_rows(bad)}; run predict again."
            )
    return table.set_column(names.index("index"), "index", table["index"].cast(pa.int64()))


def number_of_classes(table: pa.Table) -> int:
    """How many classes a table of predictions has."""
    return sum(name.startswith("model_") and name[6:].isdigit() for name in table.column_names)


def class_probs(table: pa.Table, who: str) -> np.ndarray:
    """The distributions [N, K] of model or annotators in a table of predictions."""
    columns = [f"{who}_{k}" for k in range(number_of_classes(table))]
    return np.column_stack([table[column].to_numpy() for column in columns])


def are_distributions(rows: np.ndarray) -> np.ndarray:
    """Whether each row has no number below 0 and the sum 1, but for rounding.

    >>> are_distributions(np.array([[0.25, 0.75], [0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0]])).tolist()
    [True, False, False, False]
    """
    # what is no number, or beyond all numbers, is no distribution either
    with np.errstate(invalid="ignore", over="ignore"):
        return (rows >= 0).all(1) & (abs(rows.sum(1) - 1) < ROUNDING)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)
