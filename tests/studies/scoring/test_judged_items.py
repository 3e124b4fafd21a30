"""Which items are judged, and whose predictions they get."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.errors import InputError
from datamodules.labelled_items import LabelledItems
from studies.scoring.judged_items import judged_items
from studies.scoring.prediction_file import PredictionFile, RunRecord
from tests.studies.scoring.files import some_items, some_probs

ITEMS = some_items()
NAMED = some_items([f"i{n}" for n in range(12)])
PROBS = some_probs(12, 3)
PATH = Path("mine.csv")


def of_ids(ids: list[Any], probs: np.ndarray, path: Path = PATH) -> PredictionFile:
    return PredictionFile(path, probs, pa.array([str(i) for i in ids], pa.string()))


@pytest.mark.parametrize("items", [ITEMS, NAMED])
@pytest.mark.parametrize(
    ("split", "rows"), [("test", range(8, 12)), ("val", range(4, 8)), ("all", range(12))]
)
def test_rows_find_their_items_in_whatever_order(items: LabelledItems, split: str, rows: range):
    order = np.random.default_rng(3).permutation(12)
    ids = [items.id_texts()[int(row)].as_py() for row in order]
    judged = judged_items([of_ids(ids, PROBS[order])], items, split)
    assert judged.rows.tolist() == list(rows)
    np.testing.assert_array_equal(judged.probs[PATH], PROBS[list(rows)])


def test_rows_in_the_order_of_the_dataset_are_those_of_the_split_or_of_all():
    for probs in (PROBS, PROBS[8:]):
        judged = judged_items([PredictionFile(PATH, probs, None)], ITEMS, "test")
        np.testing.assert_array_equal(judged.probs[PATH], PROBS[8:])
    with pytest.raises(
        InputError, match="5 rows and no ids; it must have 4, one for each test item, or 12, one"
    ):
        judged_items([PredictionFile(PATH, PROBS[:5], None)], ITEMS, "test")


def test_items_that_nobody_knows_or_that_are_absent_are_named():
    with pytest.raises(InputError, match="that Some does not have: x, y; ids are those of its"):
        judged_items([of_ids(["x", "i8", "y"], PROBS[:3])], NAMED, "test")
    with pytest.raises(InputError, match="does not have: 12; ids are row numbers from 0 on"):
        judged_items([of_ids([12], PROBS[:1])], ITEMS, "test")
    with pytest.raises(InputError, match=r"lacks 2 of 4 test items \(i10, i11\); .* given"):
        judged_items([of_ids(["i8", "i9"], PROBS[:2])], NAMED, "test")


def test_given_items_are_those_of_all_files():
    one, two = of_ids([9, 2], PROBS[[9, 2]]), of_ids([2, 9], PROBS[:2], Path("two.csv"))
    judged = judged_items([one, two], ITEMS, "given")
    assert judged.rows.tolist() == [2, 9]
    np.testing.assert_array_equal(judged.probs[PATH], PROBS[[2, 9]])
    np.testing.assert_array_equal(judged.probs[Path("two.csv")], PROBS[:2])
    other = of_ids([2, 3], PROBS[:2], Path("two.csv"))
    with pytest.raises(InputError, match=r"two\.csv has other items than mine\.csv"):
        judged_items([one, other], ITEMS, "given")
    with pytest.raises(InputError, match="no ids of items"):
        judged_items([PredictionFile(PATH, PROBS, None)], ITEMS, "given")


def of_run(people: np.ndarray, split: list[str]) -> PredictionFile:
    ids = pa.array(list(map(str, range(12))), pa.string())
    return PredictionFile(PATH, PROBS, ids, RunRecord(np.array(split, object), people))


def test_predictions_of_a_run_are_refused_for_other_votes_or_another_split():
    people, split = NAMED.votes.probs, ["train"] * 4 + ["val"] * 4 + ["test"] * 4
    judged = judged_items([of_run(people.astype(np.float32), split)], NAMED, "test")
    np.testing.assert_array_equal(judged.probs[PATH], PROBS[8:])
    with pytest.raises(InputError, match="another split of Some; give the seed of its run"):
        judged_items([of_run(people, split[::-1])], NAMED, "test")
    with pytest.raises(InputError, match="other votes than those of Some in rows 0, 1"):
        judged_items([of_run(people[:, ::-1] + [[0, 0.1, 0]], split)], NAMED, "test")
