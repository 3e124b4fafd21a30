"""Columns of the user's own tables in every type that Arrow has: read as what they hold, or refused
in one sentence.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamodules import OwnVotes
from datamodules.custom.describe import describe
from datamodules.io.arrow_tables import plain
from datamodules.io.tables import read_table
from tests.hostile.outcomes import outcome
from tests.hostile.readers import OWN, own_items

ITEMS = 12
WORDS = {
    "a view of texts": pa.string_view(),
    "a view of bytes": pa.binary_view(),
    "bytes": pa.binary(),
    "many bytes": pa.large_binary(),
    "long texts": pa.large_string(),
    "few different texts": pa.dictionary(pa.int8(), pa.string()),
}


def own_votes(folder: Path, table: dict[str, Any], **options) -> Any:
    """A dataset of one table of votes, read and described as a user would have it."""
    np.save(folder / "ready.npy", np.ones((ITEMS, 3), np.float32))
    (folder / "items.csv").write_bytes(own_items())
    pq.write_table(pa.table(table), folder / "own.parquet")
    data = OwnVotes(
        "own.parquet",
        "item",
        fractions=(0.5, 0.25, 0.25),
        count_repeated=True,
        root=str(folder),
        **options,
    )
    data.setup()
    list(describe(data))
    return data


of_votes = partial(
    own_votes, label="label", annotator="who", inputs="items.csv", embeddings="ready.npy"
)
of_items = partial(own_votes, counts=("votes",), embedding="vector", split_column="split")


def per_item() -> dict[str, Any]:
    votes, vectors = [[n, 3] for n in range(ITEMS)], [[0.5 * n, 1.0] for n in range(ITEMS)]
    return {
        "item": [f"i{n}" for n in range(ITEMS)],
        "votes": votes,
        "vector": vectors,
        "split": ["train", "val", "test"] * (ITEMS // 3),
    }


@pytest.mark.parametrize("kind", WORDS)
def test_texts_of_every_type_are_read_as_the_same_texts(kind: str, tmp_path: Path):
    columns = {name: pa.array(words).cast(WORDS[kind]) for name, words in OWN.items()}
    data = of_votes(tmp_path, columns)
    assert data.class_names == ("no", "yes")
    assert data.corpus.votes.counts is not None
    assert data.corpus.votes.counts.tolist() == [[2, 1]] * ITEMS
    assert read_table(tmp_path / "own.parquet", list(OWN))["label"] in (
        OWN["label"],
        [word.encode() for word in OWN["label"]],
    )


@pytest.mark.parametrize(
    "make",
    [pa.list_view, pa.large_list_view, pa.list_, pa.large_list, lambda kind: pa.list_(kind, 2)],
)
def test_lists_of_every_type_are_read_as_the_same_numbers(make: Any, tmp_path: Path):
    table = per_item()
    table["votes"] = pa.array(table["votes"], make(pa.int32()))
    table["vector"] = pa.array(table["vector"], make(pa.float32()))
    corpus = of_items(tmp_path, table, standardize=False).corpus
    assert corpus.votes.counts is not None
    assert corpus.votes.counts.tolist() == per_item()["votes"]
    assert corpus.inputs[3].tolist() == [1.5, 1.0]


def test_a_tensor_column_of_another_library_is_its_numbers(tmp_path: Path):
    lists = pa.array(per_item()["vector"], pa.list_(pa.float32(), 2))
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2]), lists)
    assert of_items(tmp_path, per_item() | {"vector": tensors}, standardize=False).corpus.inputs[
        3
    ].tolist() == [1.5, 1.0]


def values_of_every_type(rows: int) -> dict[str, pa.Array]:
    numbers, words = pa.array(range(rows), pa.int8()), pa.array([f"w{n % 3}" for n in range(rows)])
    every = {
        str(kind): numbers.cast(kind)
        for kind in (
            pa.int8(),
            pa.uint64(),
            pa.float16(),
            pa.float32(),
            pa.decimal32(4, 1),
            pa.decimal128(30, 2),
            pa.decimal256(50, 2),
        )
    }
    every |= {
        str(kind): pa.array([2**40] * rows, kind)
        for kind in (
            pa.timestamp("us"),
            pa.timestamp("ns", "No/Where"),
            pa.duration("ms"),
            pa.time64("us"),
        )
    }
    every |= {str(kind): words.cast(kind) for kind in WORDS.values()}
    every |= {
        "booleans": pa.array([n % 2 == 0 for n in range(rows)]),
        "nothing": pa.nulls(rows),
        "days": pa.array([2**31 - 1] * rows, pa.date32()),
        "bytes of one length": pa.array([b"\xff\0"] * rows, pa.binary(2)),
        "bytes that are no text": pa.array([b"\xff\xfe"] * rows, pa.binary_view()),
        "a struct": pa.array([{"a": 1}] * rows),
        "a map": pa.array([[("k", 1)]] * rows, pa.map_(pa.string(), pa.int32())),
        "lists of texts": pa.array([["a", "b"]] * rows, pa.list_view(pa.string_view())),
        "lists of lists": pa.array([[[1.0]]] * rows),
        "empty lists": pa.array([[]] * rows, pa.list_view(pa.float32())),
        "uneven lists": pa.array([[1.0] * (n % 3) for n in range(rows)], pa.list_view(pa.float32())),  # noqa: E501
        "lists with gaps": pa.array([[1.0, None]] * rows, pa.list_view(pa.float32())),
        "lists of infinities": pa.array([[1.0, float("inf")]] * rows, pa.list_view(pa.float64())),
        "JSON": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"] * rows)),
        "UUIDs": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes([200] * 16)] * rows, pa.binary(16))),  # noqa: E501
        "another library's": pa.ExtensionArray.from_storage(pa.opaque(pa.string_view(), "t", "v"), words.cast(pa.string_view())),  # noqa: E501
    }  # fmt: skip
    return every


@pytest.mark.parametrize("kind", values_of_every_type(1))
def test_a_column_of_any_type_ends_in_a_result_or_a_sentence(kind: str, tmp_path: Path):
    for read, table in ((of_votes, OWN), (of_items, per_item())):
        values = values_of_every_type(len(table["item"]))[kind]
        for column in table:
            outcome(
                lambda read=read, table=table, column=column, values=values: read(
                    tmp_path, table | {column: values}
                ),
                "own.parquet",
            )
        texts = {"item": [f"i{n}" for n in range(ITEMS)], "votes": [[n, 3] for n in range(ITEMS)]}
        if len(values) == ITEMS:  # a column of numbers for each class
            single = texts | {"a": values, "b": values}
            del single["votes"]
            outcome(
                lambda single=single: own_votes(
                    tmp_path, single, counts=("a", "b"), embeddings="ready.npy"
                ),
                "own.parquet",
            )
        outcome(lambda: read_table(tmp_path / "own.parquet", ["item"]), "own.parquet")


def test_numbers_of_words_that_are_views():
    """No parquet file can hold them, but a dataset of the hub can."""
    numbered = plain(
        pa.DictionaryArray.from_arrays(
            pa.array([0, 0, 1]), pa.array(["yes", "no"], pa.string_view())
        )
    )
    assert numbered.to_pylist() == ["yes", "yes", "no"]
    assert "view" not in str(numbered.type)
