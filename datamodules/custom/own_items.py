"""Items of the user's own: their ids, and what is known of each, from a file with one row per item
or from the votes themselves.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

from core.errors import InputError
from datamodules.io.arrow_numbers import numbers
from datamodules.io.arrow_tables import pc, refuse_rows
from datamodules.io.dictionary_encoding import Encoded, encoded, texts
from datamodules.io.images import decode_image

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Items:
    """The ids of N items as texts, and further columns with one row for each."""

    ids: pa.Array
    columns: pa.Table
    source: Path | str

    def __len__(self) -> int:
        return len(self.ids)

    def words(self, column: str) -> tuple[list[str], np.ndarray]:
        """The different texts of a column, and which of them each item has."""
        values, codes = encoded(self.columns, column, self.source)
        return texts(values).to_pylist(), codes

    def array(self, column: str) -> np.ndarray:
        """Embeddings that lie in a column as lists, float [N, features]."""
        return numbers(self.columns, [column], self.source)

    def splits(self, column: str) -> np.ndarray:
        """Which of SPLITS each item is in."""
        words, codes = self.words(column)
        other = [code for code, word in enumerate(words) if word not in SPLITS]
        fault = f"'{words[other[0]]}'" if other else ""
        rows = np.flatnonzero(np.isin(codes, other))
        refuse_rows(rows, self.source, column, fault, "a split is train, val or test")
        return np.array([SPLITS.index(word) for word in words])[codes]


def numbered_items(items: int, source: Path | str) -> Items:
    """Items whose ids are row numbers, from 0 on."""
    return Items(texts(pa.array(np.arange(items))), pa.table({}), source)


def listed_items(table: pa.Table, item: str, source: Path | str) -> Items:
    """One row per item; an id that comes twice is refused."""
    values, codes = encoded(table, item, source)
    if len(values) < len(codes):
        _, first = np.unique(codes, return_index=True)
        again = np.setdiff1d(np.arange(len(codes)), first)
        refuse_rows(again, source, item, "the id of an earlier row", "every item has one row here")
    return Items(texts(values.take(pa.array(codes))), table, source)


def items_of_votes(
    columns: dict[str, Encoded], item: str, beside: list[str], source: Path | str
) -> Items:
    """Items in the order of their ids, from rows that are votes.

    What the rows of one item say about it must be the same.
    """
    values, codes = columns[item]
    first = np.empty(len(values), np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of equal places, the last one assigned stays
    order, known = pc.sort_indices(values).to_numpy(), {}
    for column in beside:
        words, word = columns[column]
        other = np.flatnonzero(word != word[first][codes])
        fault = "something else than before for the same item"
        refuse_rows(other, source, column, fault, "two items must not share an id")
        known[column] = words.take(pa.array(word[first[order]]))
    return Items(texts(values.take(pa.array(order))), pa.table(known), source)


def read_images(paths: list[str], folder: Path, side: int) -> Tensor:
    """Images as bytes [N, 3, side, side]: whole and in colour.

    They are resized by cubic interpolation, as embedders do. Paths are below `folder`, or absolute.
    """
    images = torch.empty(len(paths), 3, side, side, dtype=torch.uint8)
    # one by one: beside the decoding of an image everything else is small
    for row, path in enumerate(paths):
        images[row] = _image(folder / path, side)
    return images


def _image(path: Path, side: int) -> Tensor:
    if not path.is_file():
        raise InputError(f"there is no image {path}; every item of data.image needs its file.")
    image = Image.fromarray(decode_image(path, "RGB", str(path)))
    return pil_to_tensor(image.resize((side, side), Image.Resampling.BICUBIC))
