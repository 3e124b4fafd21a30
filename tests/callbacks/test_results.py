"""results.json: complete, self-explaining and never half-written."""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from callbacks.history import read_history, write_history
from callbacks.records.training_record import as_training
from callbacks.results import describe_value, read_results, results_of_test, write_results
from core.atomic_io import write_atomically
from datamodules import Mixup, StochasticLabelSampling
from tests.finished import FINISHED


def test_a_write_that_fails_leaves_the_old_file_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "results.json"
    write_atomically(path, "old")

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["results.json"]


def test_a_delivery_is_described_with_all_its_options():
    described = describe_value(Mixup(base=StochasticLabelSampling(resample_every=5), alpha=0.3))
    assert described == {
        "name": "Mixup",
        "base": {"name": "StochasticLabelSampling", "resample_every": 5},
        "alpha": 0.3,
    }
    json.dumps(described)


def read_strictly(path: Path) -> Any:
    """As readers do that hold to the standard, which has neither NaN nor infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{path} says {word}")

    return json.loads(path.read_text(), parse_constant=refuse)


def test_what_is_not_defined_is_null_with_a_note_and_nan_where_it_is_read(tmp_path: Path):
    metrics = {"kl": 0.5, "entropy_spearman": math.nan, "own": math.inf}
    about = {"test_items": 540}
    write_results(
        tmp_path,
        results_of_test(about, as_training(FINISHED["training"]), 540, [], metrics, ["a probe's"]),
    )
    written = read_strictly(tmp_path / "results.json")
    assert written["metrics"] == {"entropy_spearman": None, "kl": 0.5, "own": None}
    assert written["notes"] == [
        "a probe's",
        "entropy_spearman is not defined, because one of the two entropies is the same for all "
        "items.",
        "own is not defined, because it is inf.",
    ]
    results = read_results(tmp_path)
    assert results
    assert results["metrics"] == pytest.approx(
        {"entropy_spearman": math.nan, "kl": 0.5, "own": math.nan}, nan_ok=True
    )


def test_results_of_earlier_versions_which_say_nan_are_read_alike(tmp_path: Path):
    (tmp_path / "results.json").write_text(
        json.dumps({**FINISHED, "metrics": {"kl": 0.5, "entropy_spearman": math.nan}})
    )
    results = read_results(tmp_path)
    assert results
    assert results["metrics"] == pytest.approx(
        {"kl": 0.5, "entropy_spearman": math.nan}, nan_ok=True
    )


def test_the_history_of_a_training_that_diverged_is_json_too(tmp_path: Path):
    epochs = [{"epoch": 0, "train/loss": 2.0}, {"epoch": 1, "train/loss": math.nan}]
    write_history(tmp_path, epochs)
    assert read_strictly(tmp_path / "history.json")[1] == {"epoch": 1, "train/loss": None}
    assert read_history(tmp_path) == [pytest.approx(epoch, nan_ok=True) for epoch in epochs]
    (tmp_path / "history.json").write_text(json.dumps(epochs))  # as earlier versions wrote it
    assert read_history(tmp_path) == [pytest.approx(epoch, nan_ok=True) for epoch in epochs]
