"""What a run said of each item, epoch by epoch, as one file that grows by one record an epoch:
`cartography_SPLIT.f32`.

A record is little-endian float32: the epoch's number plus 1 and the number of items, then three
rows of one value per item (`metrics.cartography.item_values`), the items in the order of their
numbers. Its place follows from the epoch, so an interrupted run that is continued writes the same
bytes to the same place, and a record that is absent, or of other items, is seen by its first two
numbers.
"""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.atomic_io import naming
from core.errors import InputError
from datamodules.io.tables import refuse_too_many_rows

HEAD, ROWS = 2, 3
ROUNDING = 1e-4


def record_path(folder: Path, split: str) -> Path:
    """Where a run keeps what it said of a split's items."""
    return folder / f"cartography_{split}.f32"


def write_epoch(path: Path, epoch: int, values: np.ndarray) -> None:
    """Put an epoch's values [3, items] in their place, and drop what an earlier attempt left behind
    it.
    """
    record = np.concatenate([[epoch + 1, values.shape[1]], values.ravel()]).astype("<f4").tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        raise InputError(
            f"{path} is a link, and a run writes to files of its own alone; remove the link."
        )
    with (
        naming(path),
        open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b") as stream,
    ):
        stream.seek(epoch * len(record))
        stream.write(record)
        stream.truncate()


def read_epochs(path: Path, items: int) -> np.ndarray:
    """The whole records of a file, [epochs, 3, items], mapped from disk; up to the first that is
    not what it should be, so none for a file of other items.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "cartography_train.f32"
    >>> for epoch in (0, 1, 3):
    ...     write_epoch(path, epoch, np.full((3, 2), 0.5))
    >>> # the third epoch was never written
    >>> read_epochs(path, items=2).shape, read_epochs(path, items=5).shape
    ((2, 3, 2), (0, 3, 5))
    """
    width = HEAD + ROWS * items
    epochs = path.stat().st_size // (4 * width) if path.exists() else 0
    if not epochs:
        return np.empty((0, ROWS, items), dtype=np.float32)
    records = np.asarray(np.memmap(path, "<f4", mode="r", shape=(epochs, width)))
    right = (records[:, 0] == np.arange(1, epochs + 1)) & (records[:, 1] == np.float32(items))
    whole = epochs if right.all() else int(right.argmin())
    return records[:whole, HEAD:].reshape(whole, ROWS, items)


def copy_epochs(source: Path, target: Path, items: int, epochs: int) -> None:
    """The first epochs of a record: those of a shorter run that is the beginning of a
    longer one.
    """
    for epoch, values in enumerate(read_epochs(source, items)[:epochs]):
        write_epoch(target, epoch, values)


def read_run(folder: Path, split: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """The item numbers and the record of a tested run: what `metrics.cartography.map_across_runs`
    takes from each seed.
    """
    path = folder / f"cartography_{split}.parquet"
    try:
        refuse_too_many_rows(pq.read_metadata(path).num_rows, path)
        items = (
            pq.read_table(path, columns=["index"])["index"]
            .combine_chunks()
            .cast(pa.int64())
            .to_numpy()
        )
    except InputError:
        raise
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as a run's data map; test this run again."
        ) from error
    if len(items) and (items[0] < 0 or (np.diff(items) <= 0).any()):
        raise InputError(
            f"{path} has other numbers of items than ascending ones; test this run again."
        )
    records = read_epochs(record_path(folder, split), len(items))
    for epoch in records:  # a record may be larger than memory
        if not np.isfinite(epoch).all():
            raise InputError(
                f"{record_path(folder, split)} holds values that are not finite numbers; train "
                "this run again."
            )
        if not ((epoch > -ROUNDING) & (epoch < 1 + ROUNDING)).all():
            raise InputError(
                f"{record_path(folder, split)} holds values that are no probabilities; it was "
                "altered, so train this run again."
            )
    return items, records
