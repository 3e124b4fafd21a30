"""The soft-digits dataset by its published columns: read from a parquet file or the hub, checked,
and written in the same form.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from core.atomic_io import write_atomically
from core.errors import InputError
from corpora.annotation.aggregation import CLASS_NAMES
from corpora.annotation.judgements import DIGITS
from datamodules.io.images import decode_image
from datamodules.io.tables import quietly, read_hub_table, read_table, refuse
from datamodules.votes.table import VoteTable

SIDE = 28  # of every image, in pixels
SPLITS = ("train", "val", "test")
PUBLISHED = {
    "original": "original_labels",
    "majority": "soft_label_argmax",
    "equal": "soft_label_yes_unc_equal",
    "uncertainty": "soft_label",
}
# not published: made here by `crowd_models`
INFERRED = {
    "dawid_skene": "soft_label_dawid_skene",
    "mace": "soft_label_mace",
}
LABELS = PUBLISHED | INFERRED
COLUMNS = ("images", *PUBLISHED.values(), "human_uncert_mean", "pct_ann_unsure", "split", "source")
OPTIONAL = (*INFERRED.values(), "simulated")


@dataclass(frozen=True)
class SoftDigitsTable:
    """The images, every kind of label they have, and what is known of each."""

    images: np.ndarray  # uint8 [N, 28, 28]
    labels: dict[str, VoteTable]  # over eleven classes; by the names in `LABELS`
    human_uncert_mean: np.ndarray
    pct_ann_unsure: np.ndarray
    split: np.ndarray  # train, val or test
    source: np.ndarray  # which dataset an image is from
    simulated: bool  # whether the annotators are a simulation

    def __len__(self) -> int:
        return len(self.images)

    def take(self, rows: np.ndarray) -> "SoftDigitsTable":
        """These rows alone."""
        labels = {name: votes.take(rows) for name, votes in self.labels.items()}
        return SoftDigitsTable(
            self.images[rows],
            labels,
            self.human_uncert_mean[rows],
            self.pct_ann_unsure[rows],
            self.split[rows],
            self.source[rows],
            self.simulated,
        )


def read_soft_digits(where: str) -> SoftDigitsTable:
    """The dataset from a parquet file, a folder of them, or the hub by its id.

    A column `simulated`, which files written here have, says whether its annotators are a
    simulation.
    """
    path = Path(where)
    if not path.exists() and (path.suffix == ".parquet" or where.count("/") != 1):
        raise InputError(
            f"there is no {where}; give a parquet file, a folder of them, or the id of a dataset "
            "on the hub (owner/name)."
        )
    table = (
        read_table(path, COLUMNS, OPTIONAL)
        if path.exists()
        else read_hub_table(where, COLUMNS, OPTIONAL)
    )
    return SoftDigitsTable(
        images=pixels(table["images"], path),
        labels={
            name: label_table(table[column], f"{where}, column {column},")
            for name, column in LABELS.items()
            if column in table
        },
        human_uncert_mean=_shares(table["human_uncert_mean"], path, "human_uncert_mean"),
        pct_ann_unsure=_shares(table["pct_ann_unsure"], path, "pct_ann_unsure"),
        split=split_words(table["split"], path),
        source=np.array([str(name) for name in table["source"]]),
        simulated=any(table.get("simulated", ())),
    )


def write_soft_digits(path: Path, table: SoftDigitsTable) -> None:
    """A parquet file in the published columns, that `read_soft_digits` and anyone who knows the
    published dataset can read.
    """
    from datasets import Dataset, Features, List, Value
    from datasets import Image as ImageFeature

    numbers = {"human_uncert_mean": table.human_uncert_mean, "pct_ann_unsure": table.pct_ann_unsure}
    labels = {LABELS[name]: votes.probs.tolist() for name, votes in table.labels.items()}
    words = {
        "split": table.split.tolist(),
        "source": table.source.tolist(),
        "file_name": [f"{row}.png" for row in range(len(table))],
    }
    columns = {
        "images": [{"bytes": png(image), "path": None} for image in table.images],
        "indices": list(range(len(table))),
        **labels,
        **{name: values.tolist() for name, values in numbers.items()},
        **words,
        "simulated": [table.simulated] * len(table),
    }
    kinds: dict[str, Any] = {
        "images": ImageFeature(),
        "indices": Value("int64"),
        "simulated": Value("bool"),
    }
    kinds |= (
        dict.fromkeys(labels, List(Value("float64")))
        | dict.fromkeys(numbers, Value("float64"))
        | dict.fromkeys(words, Value("string"))
    )
    content = BytesIO()
    with quietly():
        Dataset.from_dict(columns, features=Features(kinds)).to_parquet(content)
    write_atomically(path, content.getvalue())


def label_table(values: Sequence[Any] | np.ndarray, source: str) -> VoteTable:
    """Labels over eleven classes, from classes by number or from distributions over ten digits or
    all eleven labels.

    >>> label_table([3, 10], "some.parquet").majority.tolist()
    [3, 10]
    >>> label_table([[0.5, 0.5] + [0] * 8], "some.parquet").probs.shape
    (1, 11)
    """
    try:
        table = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{source} has labels of different lengths or no numbers; all must have one number "
            "for each class."
        ) from None
    classes = len(CLASS_NAMES)
    if table.ndim == 1:
        bad = np.flatnonzero(~np.isin(table, np.arange(classes)))
        allowed = f"they must be whole numbers from 0 to {classes - 1}"
        refuse(bad, Path(source), "labels that are no class", allowed)
        table = np.eye(classes)[table.astype(int)]
    if table.ndim != 2 or table.shape[1] not in (DIGITS, classes):
        raise InputError(
            f"{source} has labels of {table.shape[-1]} numbers; they need one for each of "
            f"{DIGITS} digits, and may have one for NaN."
        )
    return VoteTable.from_probs(
        np.pad(table, ((0, 0), (0, classes - table.shape[1]))), source=source
    )


def split_words(values: Sequence[Any], source: Path) -> np.ndarray:
    """The split of each row, by the three words that there are."""
    split = np.array([str(word) for word in values])
    other = np.flatnonzero(~np.isin(split, SPLITS))
    fault = f"the split '{split[other[0]]}'" if len(other) else ""
    refuse(other, source, fault, f"every split must be {', '.join(SPLITS[:-1])} or {SPLITS[-1]}")
    return split


def pixels(images: Sequence[Any], source: Path) -> np.ndarray:
    """Grey images as bytes [N, 28, 28], from encoded pictures or lists of rows."""
    if not len(images):
        raise InputError(f"{source} has no images; it must have at least one.")
    arrays = [_grey(image, row, source) for row, image in enumerate(images)]
    shapes = np.array([array.shape for array in arrays])
    other = np.flatnonzero((shapes != (SIDE, SIDE)).any(1))
    size = " x ".join(map(str, shapes[other[0]])) if len(other) else ""
    refuse(other, source, f"an image of {size}", f"every image must have {SIDE} x {SIDE} pixels")
    return np.stack(arrays)


def _grey(image: Any, row: int, source: Path) -> np.ndarray:
    if isinstance(image, dict) and isinstance(image.get("bytes"), bytes):
        return decode_image(image["bytes"], "L", f"{source}, the image of row {row},")
    try:
        values = np.array(image, dtype=float)
        height, width = values.shape[-2:]  # a channel of its own, if there is one, comes first
        values = values.reshape(height, width)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{source} has no image in row {row}; it must be a picture or rows of grey values."
        ) from None
    if not np.isin(values, np.arange(256)).all():
        raise InputError(
            f"{source} has other values than grey ones in the image of row {row}; they must be "
            "whole numbers from 0 to 255."
        )
    return values.astype(np.uint8)


def _shares(values: Sequence[Any], source: Path, column: str) -> np.ndarray:
    try:
        table = np.array(values, dtype=float).reshape(len(values))
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{source} has other values than numbers as {column}; it must be a share, from 0 to 1."
        ) from None
    outside = np.flatnonzero(~((table >= 0) & (table <= 1)))
    refuse(outside, source, f"{column} outside 0 to 1", "it must be a share")
    return table


def png(image: np.ndarray) -> bytes:
    """A grey image as an encoded picture."""
    content = BytesIO()
    Image.fromarray(image).save(content, "png")
    return content.getvalue()
