"""The seeds of a cell as one model, from the predictions that runs keep."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from callbacks.prediction_table import prediction_table
from studies.analysis.collect import Record
from studies.analysis.ensemble import Ensemble
from studies.analysis.ensembles import MOST_MEMBERS, Ensembles, NoEnsemble

ITEMS = 40
PEOPLE = torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(3, 0.4), ITEMS)).float()


def run(folder: Path, seed: int, test: np.ndarray | None, data: str = "Digits") -> Record:
    """A finished run that predicted all items, of which it tested these; none without."""
    name = f"run{seed}"
    (folder / name).mkdir(exist_ok=True)
    if test is not None:
        probs = torch.from_numpy(np.random.default_rng([1, seed]).dirichlet(np.ones(3), ITEMS))
        splits = {"train": np.setdiff1d(np.arange(ITEMS), test), "test": test}
        table = prediction_table(probs, PEOPLE, torch.arange(ITEMS), splits)
        pq.write_table(table, folder / name / "predictions.parquet")
    config = {"data": {"class_path": f"datamodules.{data}", "init_args": {"seed": seed}}}
    return Record(name, folder / name, {}, {}, {}, config)


def test_only_test_items_count_and_every_cell_is_read_once(tmp_path):
    records = [run(tmp_path, seed, np.arange(seed, ITEMS, 2)) for seed in (0, 1, 2)]
    ensembles = Ensembles()
    made = ensembles.of(records)
    assert isinstance(made, Ensemble)
    # of seeds 0 and 2 these are the even ones, and seed 1 has the odd ones for itself
    assert made.items.tolist() == list(range(2, ITEMS, 2))
    assert (made.members, made.left_out, set(made.tested)) == (3, 21, {2})
    for record in records:
        (record.folder / "predictions.parquet").unlink()
    assert ensembles.of(records) is made


@pytest.mark.parametrize(
    ("tests", "data", "reason"),
    [
        ([np.arange(9)], "Digits", "takes two seeds"),
        ([np.arange(9), None], "Digits", "predict: true"),
        ([np.arange(9), np.arange(9, 18)], "Digits", "0 test items are shared"),
        ([np.arange(9), np.arange(9)], "MNISTSubset", "each seed draws items of its own"),
    ],
)
def test_what_there_is_not_is_said(tests, data, reason, tmp_path):
    records = [run(tmp_path, seed, test, data) for seed, test in enumerate(tests)]
    found = Ensembles().of(records)
    assert isinstance(found, NoEnsemble)
    assert reason in found.reason
    assert not found.reason.endswith(".")


def test_a_damaged_file_costs_its_ensemble_alone(tmp_path):
    records = [run(tmp_path, seed, np.arange(9)) for seed in range(3)]
    (records[1].folder / "predictions.parquet").write_bytes(b"PAR1")
    found = Ensembles().of(records)
    assert isinstance(found, NoEnsemble)
    assert "predictions.parquet cannot be read; run predict again" in found.reason


def test_so_many_members_are_enough(tmp_path):
    records = [run(tmp_path, seed, np.arange(9)) for seed in (0, 1)] * MOST_MEMBERS
    made = Ensembles().of(records)
    assert isinstance(made, Ensemble)
    assert made.members == MOST_MEMBERS
