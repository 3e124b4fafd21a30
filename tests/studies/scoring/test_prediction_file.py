"""Files of predictions: the same numbers from every format, and a sentence for each mistake."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from callbacks.prediction_table import write_predictions
from core.errors import InputError
from studies.scoring.prediction_file import PredictionFile, read_prediction_file
from tests.studies.scoring.files import FORMATS, by_class, some_probs, write_table

CLASSES, ROWS = ("yes", "no", "<b>"), 6
PROBS = some_probs(ROWS, 3)
IDS = [f"i{n}" for n in range(ROWS)]
GOOD: dict[str, Sequence] = {"item": IDS, **by_class(PROBS, CLASSES)}


def read(path: Path, **options: Any) -> PredictionFile:
    return read_prediction_file(path, CLASSES, ("item", "index"), ROWS, **options)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_table(kind: str, tmp_path: Path):
    file = read(write_table(tmp_path / f"mine.{kind}", GOOD))
    np.testing.assert_allclose(file.probs, PROBS, atol=1e-15)
    assert file.ids is not None
    assert file.ids.to_pylist() == IDS


@pytest.mark.parametrize("kind", FORMATS)
def test_columns_may_be_numbers_of_classes_and_come_in_any_order(kind: str, tmp_path: Path):
    numbered = {"2": PROBS[:, 2], "uid": IDS, "0": PROBS[:, 0], "1": PROBS[:, 1]}
    table = {name: list(values) for name, values in numbered.items()}
    file = read(write_table(tmp_path / f"mine.{kind}", table), item="uid")
    np.testing.assert_allclose(file.probs, PROBS, atol=1e-15)
    assert file.ids is not None
    assert file.ids.to_pylist() == IDS


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_without_ids_are_in_the_order_of_the_dataset(kind: str, tmp_path: Path):
    file = read(write_table(tmp_path / f"mine.{kind}", by_class(PROBS, CLASSES)))
    assert file.ids is None
    np.save(tmp_path / "mine.npy", PROBS)
    np.testing.assert_array_equal(read(tmp_path / "mine.npy").probs, file.probs)


def test_rounded_rows_are_divided_by_their_sum(tmp_path: Path):
    np.save(tmp_path / "mine.npy", np.full((2, 3), 0.333))
    np.testing.assert_allclose(read(tmp_path / "mine.npy").probs, 1 / 3, atol=1e-15)


def test_predictions_of_a_run_are_taken_as_they_are(tmp_path: Path):
    probs, people = (torch.from_numpy(some_probs(ROWS, 3, seed)).float() for seed in (1, 2))
    splits = {"train": np.arange(3), "val": np.arange(3, 5), "test": np.arange(3, 5)}
    index = torch.tensor([5, 0, 4, 1, 2, 3])
    path = write_predictions(tmp_path, probs, people, index, splits)
    file = read(path)
    assert file.of_run is not None
    assert file.ids is not None
    assert file.ids.to_pylist() == list(map(str, range(ROWS)))
    np.testing.assert_allclose(file.probs, probs[index.argsort()].numpy(), atol=1e-6)
    assert file.of_run.split.tolist() == ["train"] * 3 + ["test"] * 2 + [""]
    np.testing.assert_allclose(file.of_run.people, people.numpy(), atol=1e-7)


def changed(column: str, row: int, value: Any) -> dict[str, Sequence]:
    values: list[Any] = list(GOOD[column])
    values[row] = value
    return {**GOOD, column: values}


def renamed(old: str, new: str) -> dict[str, Sequence]:
    return {new if name == old else name: values for name, values in GOOD.items()}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (renamed("yes", "yess"), r"no column for the class 'yes' \(did you mean yess\?\)"),
        (renamed("item", "uid"), r"columns besides those of classes \(uid\).*--item"),
        (changed("item", 3, "i1"), "column item, has the id of an earlier row in row 3"),
        (changed("item", 3, ""), "column item, has no value in row 3"),
        (changed("no", 2, 0.99), "does not sum to 1 in row 2"),
        (changed("no", 2, float("nan")), "column no, has .* in row 2"),
        (changed("no", 2, None), "column no, has .* in row 2"),
        (changed("no", 2, float("inf")), "column no, has .* in row 2"),
        ({**GOOD, **by_class(np.log(PROBS), CLASSES)}, "looks like logits.*apply softmax"),
        ({**GOOD, **by_class(PROBS - [[1, -1, 0]], CLASSES)}, "has negative numbers in rows"),
        ({**GOOD, **by_class(np.full((ROWS, 3), 4), CLASSES)}, "looks like counts"),
        ({name: [*values, values[0]] for name, values in GOOD.items()}, "7 rows.* only 6 items"),
        ({name: [] for name in GOOD}, "cannot be read|no column|no rows|no names"),
    ],
)
def test_a_mistake_is_one_sentence(kind: str, table: dict, sentence: str, tmp_path: Path):
    path = write_table(tmp_path / f"mine.{kind}", table)
    with pytest.raises(InputError) as error:
        read(path)
    assert re.search(sentence, str(error.value)), str(error.value)
    assert "mine." in str(error.value)
    assert str(error.value).count(". ") == 0, "more than one sentence"


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (PROBS[:, :2], r"shape \[6, 2\]; it must be \[items, 3\]"),
        (PROBS[0], r"shape \[3\]"),
        (np.concatenate([PROBS, PROBS]), "12 rows; there are only 6 items"),
        (PROBS[:0], "has no rows"),
        (np.where(PROBS[1, 1] == PROBS, np.nan, PROBS), "not finite numbers in row 1"),
        (np.log(PROBS), "looks like logits"),
        (PROBS.astype(object), "not a plain array of numbers"),
        (PROBS.astype(complex), "not a plain array of numbers"),
    ],
)
def test_a_mistake_in_an_array_is_one_sentence(array: np.ndarray, sentence: str, tmp_path: Path):
    np.save(tmp_path / "mine.npy", array, allow_pickle=True)
    with pytest.raises(InputError, match=sentence):
        read(tmp_path / "mine.npy")


def test_an_item_column_that_is_not_there(tmp_path: Path):
    path = write_table(tmp_path / "mine.csv", GOOD)
    with pytest.raises(InputError, match="no column itm, which --item names"):
        read(path, item="itm")
    np.save(tmp_path / "mine.npy", PROBS)
    with pytest.raises(InputError, match="has no columns with names"):
        read(tmp_path / "mine.npy", item="item")


def test_json_lines_of_different_kinds(tmp_path: Path):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"yes": 0.5, "no": 0.5, "<b>": 0}\n{"yes": "x", "no": [1], "<b>": 0}\n')
    with pytest.raises(InputError, match="column yes, holds different kinds"):
        read(path)
    path.write_text("[0.5, 0.5, 0]\n")
    with pytest.raises(InputError, match="no names in row 0"):
        read(path)
