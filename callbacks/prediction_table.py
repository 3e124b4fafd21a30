"""`predict` as a table: one row per item with the model's and the annotators' distributions and entropies."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from lightning import Callback, LightningModule, Trainer
from torch import Tensor
from torchmetrics.utilities import dim_zero_cat

from errors import InputError
from kept_files import write_atomically
from metrics import AllItems, functional


class _IndexedItems(AllItems):
    index: list[Tensor]

    def __init__(self):
        super().__init__()
        self.add_state("index", [], dist_reduce_fx="cat")

    def update(self, probs: Tensor, target_probs: Tensor, index: Tensor) -> None:  # pyright: ignore
        super().update(probs, target_probs)
        self.index.append(index)

    def compute(self):
        return *super().compute(), dim_zero_cat(self.index)


class PredictionTable(Callback):
    """Writes `predictions.parquet`: index, split, model_0.., annotators_0.., both entropies, predicted and majority class."""

    def __init__(self):
        self._items = _IndexedItems()

    def on_predict_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._items = _IndexedItems().to(pl_module.device)

    def on_predict_batch_end(self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch, batch_idx, dataloader_idx=0) -> None:
        self._items.update(outputs.probs, outputs.target_probs, outputs.index)

    def on_predict_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        probs, target_probs, index = (values.cpu() for values in self._items.compute())
        if not trainer.is_global_zero:
            return
        path = write_predictions(Path(trainer.default_root_dir), probs, target_probs, index, trainer.datamodule.corpus.splits)  # pyright: ignore
        print(f"{len(index)} items written to {path}")


def write_predictions(folder: Path, probs: Tensor, target_probs: Tensor, index: Tensor, splits: dict[str, np.ndarray]) -> Path:
    """`predictions.parquet` in a run's folder, in the order of the items."""
    order = index.argsort()
    content = BytesIO()
    pq.write_table(prediction_table(probs[order], target_probs[order], index[order], splits), content)
    write_atomically(folder / "predictions.parquet", content.getvalue())
    return folder / "predictions.parquet"


def prediction_table(probs: Tensor, target_probs: Tensor, index: Tensor, splits: dict[str, np.ndarray]) -> pa.Table:
    """The table itself. An item that serves for validation and test alike is called test.

    >>> table = prediction_table(torch.tensor([[0.9, 0.1]]), torch.tensor([[0.5, 0.5]]), torch.tensor([0]), {"test": np.array([0])})
    >>> table.column_names
    ['index', 'split', 'model_0', 'model_1', 'annotators_0', 'annotators_1', 'model_entropy', 'annotator_entropy', 'predicted', 'majority']
    """
    split = np.full(int(index.max()) + 1, "", dtype="<U5")
    for name in ("train", "val", "test"):
        split[splits.get(name, np.array([], dtype=int))] = name
    columns = {"index": index, "split": split[index.numpy()]}
    columns |= {f"model_{k}": probs[:, k] for k in range(probs.shape[1])}
    columns |= {f"annotators_{k}": target_probs[:, k] for k in range(probs.shape[1])}
    columns |= {"model_entropy": functional.entropy(probs), "annotator_entropy": functional.entropy(target_probs)}
    columns |= {"predicted": probs.argmax(1), "majority": target_probs.argmax(1)}
    return pa.table({name: values.numpy() if isinstance(values, torch.Tensor) else values for name, values in columns.items()})


def read_predictions(folder: Path, split: str) -> pa.Table:
    """What `predict` wrote of a run's items of this split."""
    path = folder / "predictions.parquet"
    try:
        table = pq.read_table(path, filters=[("split", "=", split)])
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read; run predict again.") from error
    classes = sum(name.startswith("model_") and name[6:].isdigit() for name in table.column_names)
    numbers = ["index", *(f"{kind}_{k}" for kind in ("model", "annotators") for k in range(classes))]
    if classes < 2 or not all(table.column_names.count(name) == 1 and _is_number(table.schema.field(name).type) for name in numbers):
        raise InputError(f"{path} has other columns than predictions have; run predict again.")
    if any(table[name].null_count for name in numbers):
        raise InputError(f"{path} has places without a value; run predict again.")
    return table


def class_probs(table: pa.Table, who: str) -> np.ndarray:
    """The distributions [N, K] of model or annotators in a table of predictions."""
    classes = sum(name.startswith("model_") and name[6:].isdigit() for name in table.column_names)
    return np.column_stack([table[f"{who}_{k}"].to_numpy() for k in range(classes)])


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)
