"""The example runs as it stands, and finds the coverage that is asked for."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import softmax

from callbacks.prediction_table import write_predictions

SCRIPT = Path(__file__).parents[2] / "examples/prediction_sets.py"


def test_votes_are_covered_as_often_as_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(600, 4)) * 3
    people = torch.from_numpy(rng.multinomial(9, softmax(truth, 1)) / 9)
    probs = torch.from_numpy(softmax(2 * truth + rng.normal(size=truth.shape), 1))
    index = torch.arange(600)
    write_predictions(tmp_path, probs, people, index, {"test": index.numpy()})
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(tmp_path)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("600 test items")
    for line, wanted in zip(lines, (95, 90, 80), strict=True):
        numbers = [float(number) for number in re.findall(r"\d+\.\d+", line)]
        covered, _, by_majority, *sizes = numbers
        assert covered == pytest.approx(wanted, abs=1)
        assert by_majority < wanted - 1
        assert sizes == sorted(sizes)
