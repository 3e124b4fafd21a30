"""A built corpus of digits as one parquet file, in columns that people can be asked about
(`corpora.annotation.annotated_corpus`) and a crowd simulated for.
"""

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from core.atomic_io import write_atomically
from corpora.annotation.soft_digits_table import label_table, pixels, png, split_words
from datamodules.io.tables import quietly, read_table

COLUMNS = ("image", "images", "original_labels", "split", "source", "difficulty", "indices")


@dataclass(frozen=True)
class DigitCorpus:
    """Item by item."""

    # a name, such as mnist-train-00012: the source, its own part, and the row in that
    image: np.ndarray
    images: np.ndarray  # uint8 [N, 28, 28]
    labels: np.ndarray  # distributions over ten digits that the images came with, [N, 10]
    split: np.ndarray  # train, val or test
    source: np.ndarray
    difficulty: np.ndarray  # easy, ambiguous or hard
    indices: np.ndarray  # the row in the source, over all its parts

    def __len__(self) -> int:
        return len(self.images)


def write_corpus(path: Path, corpus: DigitCorpus) -> None:
    """The same corpus gives the same bytes."""
    from datasets import Dataset, Features, List, Value
    from datasets import Image as ImageFeature

    words = {
        name: getattr(corpus, name).tolist() for name in ("image", "split", "source", "difficulty")
    }
    columns = {
        **words,
        "images": [{"bytes": png(image), "path": None} for image in corpus.images],
        "original_labels": corpus.labels.tolist(),
        "indices": corpus.indices.tolist(),
    }
    kinds: dict[str, Any] = {
        "images": ImageFeature(),
        "original_labels": List(Value("float64")),
        "indices": Value("int64"),
    }
    kinds |= dict.fromkeys(words, Value("string"))
    content = BytesIO()
    with quietly():
        Dataset.from_dict(columns, features=Features(kinds)).to_parquet(content)
    write_atomically(path, content.getvalue())


def read_corpus(path: Path) -> DigitCorpus:
    """What `write_corpus` wrote; raises an `InputError` for a file of another form."""
    table = read_table(path, COLUMNS)
    labels = label_table(table["original_labels"], f"{path}, column original_labels,")
    words = {
        name: np.array(table[name], dtype=object).astype(str)
        for name in ("image", "source", "difficulty")
    }
    return DigitCorpus(
        images=pixels(table["images"], path),
        labels=labels.probs[:, :10],
        split=split_words(table["split"], path),
        indices=np.array(table["indices"]),
        **words,
    )
