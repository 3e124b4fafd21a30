"""`predictions.parquet`, written by groups of rows: the same table for any groups and batches."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from callbacks import prediction_table as module
from callbacks.prediction_table import prediction_table, read_predictions, write_predictions

ITEMS, CLASSES = 1000, 3
RNG = np.random.default_rng(0)
SPLITS = {"train": np.arange(600), "val": np.arange(600, 700), "test": np.arange(700, ITEMS)}


def some_predictions() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    probs, people = (
        torch.from_numpy(RNG.dirichlet(np.ones(CLASSES), ITEMS)).float() for _ in range(2)
    )
    return probs, people, torch.from_numpy(RNG.permutation(ITEMS))


@pytest.mark.parametrize("group", [7, 999, 1000, 1 << 15])
@pytest.mark.parametrize("batch", [1, 64, 1000])
def test_groups_and_batches_change_nothing(
    group: int, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "GROUP", group * CLASSES)
    probs, people, index = some_predictions()
    path = write_predictions(tmp_path, probs.split(batch), people, index.split(batch), SPLITS)
    order = index.argsort()
    expected = prediction_table(probs[order], people, index[order], SPLITS)
    read = pq.read_table(path)
    assert read.schema.equals(expected.schema)
    assert read.equals(expected)
    assert pq.read_metadata(path).num_row_groups == -(-ITEMS // group)
    assert len(read_predictions(tmp_path, "test")) == 300
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_small_file_is_byte_for_byte_that_of_earlier_versions(tmp_path: Path):
    probs, people, index = some_predictions()
    path = write_predictions(tmp_path, probs, people, index, SPLITS)
    order = index.argsort()
    pq.write_table(prediction_table(probs[order], people, index[order], SPLITS), tmp_path / "whole")
    assert path.read_bytes() == (tmp_path / "whole").read_bytes()


def test_what_was_there_stays_where_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    predictions = some_predictions()
    path = write_predictions(tmp_path, *predictions, SPLITS)
    before, made = path.read_bytes(), []

    def fails_later(*arguments):
        made.append(prediction_table(*arguments))
        if len(made) > 2:
            raise RuntimeError("no more")
        return made[-1]

    monkeypatch.setattr(module, "GROUP", 100 * CLASSES)
    monkeypatch.setattr(module, "prediction_table", fails_later)
    with pytest.raises(RuntimeError, match="no more"):
        write_predictions(tmp_path, *predictions, SPLITS)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
