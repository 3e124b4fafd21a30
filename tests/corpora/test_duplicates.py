"""Duplicates: planted ones are found, and against all pairs compared one by one nothing is missed
or made up.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from corpora import duplicates
from corpora.duplicates import Pairs, exact_pairs, first_of_each, leaks, near_pairs


def smooth_images(number: int, seed: int = 0) -> np.ndarray:
    """Blotches, some of which resemble each other: as with digits, correlations are anywhere
    between 0 and 1.
    """
    rng = np.random.default_rng(seed)
    coarse = rng.random((number, 4, 4)) * rng.integers(0, 2, (number, 4, 4))
    return (coarse.repeat(7, 1).repeat(7, 2) * 255).astype(np.uint8)


def all_pairs(images: np.ndarray, correlation: float) -> list[tuple[int, int]]:
    flat = images.reshape(len(images), -1).astype(float)
    table = np.corrcoef(flat)
    return [
        (a, b)
        for a in range(len(flat))
        for b in range(a + 1, len(flat))
        if table[a, b] >= correlation
    ]


@pytest.mark.parametrize("block", [7, 64, 4096])
@pytest.mark.parametrize("correlation", [0.6, 0.8, 0.99])
def test_the_shortcut_finds_the_same_pairs_as_comparing_everything(
    block: int, correlation: float, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(duplicates, "BLOCK", block)
    monkeypatch.setattr(duplicates, "COMPONENTS", 5)  # of the 16 that differ
    images = smooth_images(150)
    images[120:] = np.clip(
        images[:30] + np.random.default_rng(1).integers(-9, 9, (30, 28, 28)), 0, 255
    )
    result = near_pairs(images, correlation)
    expected = all_pairs(images, correlation)
    assert list(zip(result.first.tolist(), result.second.tolist(), strict=True)) == expected
    assert len(expected) >= 20


def test_planted_duplicates_are_found_and_told_apart():
    images = smooth_images(60)
    images[50] = images[3]  # exact
    images[51] = images[4] // 2  # darker
    images[52] = images[5]
    images[52, 0, 0] ^= 8  # one pixel by a little
    images[53] = np.roll(images[6], 9, axis=1)  # another image
    images[54] = images[3]
    exact, near = exact_pairs(images), near_pairs(images, 0.99)
    assert np.stack(exact, 1).tolist() == [[3, 50], [3, 54]]
    assert np.stack(near, 1).tolist() == [[3, 50], [3, 54], [4, 51], [5, 52], [50, 54]]
    assert np.flatnonzero(~first_of_each(60, [exact, near])).tolist() == [50, 51, 52, 54]


def test_images_of_one_grey_value_are_duplicates_only_where_they_are_equal():
    images = smooth_images(6)
    images[1], images[2], images[4] = 0, 200, 0
    assert np.stack(exact_pairs(images), 1).tolist() == [[1, 4]]
    assert len(near_pairs(images[[0, 1, 2, 3, 4]], 0.99).first) == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda pair: pair[0] < pair[1]),
        max_size=25,
    )
)
def test_what_is_kept_has_no_duplicate_among_the_kept_and_what_is_removed_has_an_earlier_one(
    listed: list[tuple[int, int]],
):
    first, second = np.array(listed, int).reshape(-1, 2).T
    kept = first_of_each(12, [Pairs(first, second)])
    assert not (kept[first] & kept[second]).any()
    for item in np.flatnonzero(~kept):
        assert kept[first[second == item]].any()


def test_leaks_name_the_parts_and_the_rows():
    parts = np.array(["mnist train", "mnist test", "mnist train", "ardis train", "mnist test"])
    result = leaks(parts, Pairs(np.array([0, 0, 1, 2]), np.array([1, 2, 3, 4])))
    assert [(leak.one, leak.other, leak.pairs.tolist()) for leak in result] == [
        ("ardis train", "mnist test", [[3, 1]]),
        ("mnist test", "mnist train", [[1, 0], [4, 2]]),
    ]
    assert leaks(parts, Pairs(np.array([], int), np.array([], int))) == []


@pytest.mark.parametrize("correlation", [0.0, 1.01])
def test_a_threshold_that_is_no_correlation(correlation: float):
    with pytest.raises(
        InputError, match=f"near_duplicate is {correlation}; it must be a correlation above 0"
    ):
        near_pairs(smooth_images(3), correlation)
