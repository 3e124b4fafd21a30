"""The example runs as it stands, and prints what it says."""

import re
import runpy
from ast import literal_eval
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import entropy

SCRIPT = Path(__file__).parents[2] / "examples/votes_to_uncertainty.py"
COUNTS = np.array([[5, 0, 0], [3, 2, 0], [1, 2, 2]])


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    """What follows the colon of each printed line, by what precedes it."""
    output = StringIO()
    with redirect_stdout(output):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    pairs = (line.split(":", 1) for line in output.getvalue().splitlines())
    return {name: rest.strip() for name, rest in pairs}


def epochs(line: str) -> np.ndarray:
    return np.array(literal_eval(line[line.index("[") :]))


def test_the_entropies_are_those_of_the_votes(printed: dict[str, str]):
    expected = entropy(COUNTS, axis=1).tolist()
    assert literal_eval(printed["annotators' entropy"]) == pytest.approx(expected, abs=0.005)


def test_each_delivery_gives_labels_that_annotators_gave(printed: dict[str, str]):
    assert epochs(printed["MajorityVote"]).tolist() == [[0, 0, 1]] * 4
    for name in ("StochasticLabelSampling", "Multipass"):
        delivered = epochs(printed[name])
        assert delivered.shape == (4, 3)
        assert all(COUNTS[item, label] for row in delivered for item, label in enumerate(row))
        assert len(np.unique(delivered, axis=0)) > 1
    assert epochs(printed["SoftLabels"]) == pytest.approx(COUNTS / 5)


def test_the_model_is_nearer_to_people_than_the_best_constant(printed: dict[str, str]):
    model, constant = map(float, re.findall(r"\d\.\d+", printed["soft NLL"]))
    assert model < 0.5 * constant
    assert float(printed["accuracy"]) > 0.7
    assert float(printed["entropy correlation"]) > 0.4
