"""Easy, ambiguous and hard by bounds on a data map, and the map of a network that is watched while
it learns.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from corpora.difficulty import NONE, REGIONS, Regions, watched_map
from datamodules.io.idx import read_idx
from datamodules.io.mnist import FILES
from tests.conftest import write_mnist


@given(st.floats(0, 1), st.floats(0, 0.5))
def test_every_place_on_the_map_is_in_the_region_that_the_bounds_say(
    confidence: float, variability: float
):
    region = Regions(5, 0.2, 0.8, 0.3).of(np.array([confidence]), np.array([variability]))[0]
    name = "none" if region == NONE else REGIONS[region]
    if variability >= 0.2:
        assert name == "ambiguous"
    elif confidence >= 0.8:
        assert name == "easy"
    elif confidence <= 0.3:
        assert name == "hard"
    else:
        assert name == "none"


def test_a_network_finds_wrong_labels_hard_and_learns_the_others(tmp_path):
    root = write_mnist(tmp_path, items=400)
    images, digits = (read_idx(root / file.path) for file in FILES["train"])
    labels = np.eye(10)[digits]
    wrong = np.arange(0, 400, 40)
    labels[wrong] = np.roll(labels[wrong], 1, axis=1)
    result, again = (watched_map(images, labels, epochs=6, seed=3) for _ in range(2))
    np.testing.assert_array_equal(result.confidence, again.confidence)
    right = np.setdiff1d(np.arange(400), wrong)
    assert result.confidence[wrong].max() < result.confidence[right].min()
    other = watched_map(images, labels, epochs=6, seed=4)
    assert not np.array_equal(result.confidence, other.confidence)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((1, 0.2, 0.8, 0.3), "epochs of a data map is 1; variability needs 2 or more."),
        (
            (5, 0.2, 0.3, 0.3),
            "hard_confidence is 0.3 and easy_confidence 0.3; the first must be the smaller",
        ),
        ((5, 0.6, 0.8, 0.3), "ambiguous_variability is 0.6; it must be above 0 and at most 0.5"),
    ],
)
def test_bounds_that_make_no_regions(bounds: tuple, message: str):
    with pytest.raises(InputError, match=message):
        Regions(*bounds)
