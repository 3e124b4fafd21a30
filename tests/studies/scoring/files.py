"""The same predictions in every format that `cli.py score` reads."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamodules.labelled_items import LabelledItems
from datamodules.votes.table import VoteTable

FORMATS = ("csv", "parquet", "jsonl")


def some_probs(rows: int, classes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(classes), rows)


def some_items(ids: Sequence[str] | None = None, items: int = 12, classes: int = 3):
    """Items with votes, of which the last four are for tests and the four before for validation."""
    counts = np.random.default_rng(1).multinomial(9, [1 / classes] * classes, size=items)
    votes = VoteTable(counts, source="votes.csv")
    parts = np.split(np.arange(items), [items - 8, items - 4])
    return LabelledItems(
        "Some",
        tuple("abcdefghij"[:classes]),
        votes,
        votes.unanimous,
        dict(zip(("train", "val", "test"), parts, strict=True)),
        None if ids is None else pa.array(ids, pa.string()),
        ("item", "index"),
    )


def write_table(path: Path, columns: dict[str, Sequence]) -> Path:
    """A table as the ending of its file says."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if path.suffix == ".parquet":
        pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with open(path, "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, columns)
            writer.writeheader()
            writer.writerows(rows)
    return path


def by_class(probs: np.ndarray, names: Sequence[str]) -> dict[str, Sequence]:
    return {name: probs[:, place].tolist() for place, name in enumerate(names)}
