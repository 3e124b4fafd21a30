"""Which items make a corpus: as many as asked for, enough easy ones in training, the rest as even
as there are some, every part with its share.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from corpora.difficulty import NONE
from corpora.selection import draw, even_quotas, select


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.floats(0, 1))
def test_quotas_are_as_even_as_what_there_is_allows(available: list[int], share: float):
    cells, total = np.array(available), round(share * sum(available))
    quotas = even_quotas(cells, total)
    assert quotas.sum() == total
    assert (quotas <= cells).all()
    assert (
        (quotas >= quotas.max() - 1) | (quotas == cells)
    ).all()  # who gives less than others gives all


def test_more_than_there_is_cannot_be_taken():
    with pytest.raises(InputError, match="7 items cannot be taken from 6"):
        even_quotas(np.array([2, 4]), 7)


def test_a_draw_is_of_its_seed_and_leaves_out_what_is_not_offered():
    cell = np.array([0, 0, 0, 1, 1, -1, -1, 2])
    first, again, other = (draw(cell, np.array([2, 1, 0]), seed).tolist() for seed in (0, 0, 5))
    assert first == again
    assert first != other
    for rows in (first, other):
        assert np.bincount(cell[rows], minlength=3).tolist() == [2, 1, 0]


def offered(easy: int, ambiguous: int, hard: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """So many items of each region and digit, in no order, and some in no region."""
    region = np.tile(np.repeat([0, 1, 2, NONE], [easy, ambiguous, hard, 4]), 10)
    digits = np.repeat(np.arange(10), easy + ambiguous + hard + 4)
    order = np.random.default_rng(seed).permutation(len(digits))
    return digits[order], region[order]


@settings(max_examples=40)
@given(
    st.integers(25, 60),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(0, 14),
    st.integers(0, 3),
)
def test_a_selection_keeps_all_that_was_promised(
    easy: int, ambiguous: int, hard: int, needed: int, seed: int
):
    digits, region = offered(easy, ambiguous, hard)
    sizes = (175, 38, 37)
    rows, part = select(digits, region, sizes, needed, seed, "mnist")
    again = select(digits, region, sizes, needed, seed, "mnist")
    assert np.array_equal(rows, again.rows)
    assert np.array_equal(part, again.part)
    assert len(np.unique(rows)) == 250
    assert np.bincount(part).tolist() == list(sizes)
    assert (region[rows] != NONE).all()
    in_train = rows[(part == 0) & (region[rows] == 0)]
    assert np.bincount(digits[in_train], minlength=10).min() >= needed
    others = np.bincount((digits * 3 + region)[rows], minlength=30).reshape(10, 3)[:, 1:]
    there_are = np.tile([ambiguous, hard], (10, 1))
    assert ((others >= others.max() - 1) | (others == there_are)).all()
    for cell in range(30):  # every part has its share of every digit and region
        mine = part[(digits * 3 + region)[rows] == cell]
        expected = np.array(sizes) / 250 * len(mine)
        assert (np.abs(np.bincount(mine, minlength=3) - expected) < 2).all()


@pytest.mark.parametrize(
    ("sizes", "needed", "message"),
    [
        (
            (70, 15, 15),
            8,
            "mnist is to have 100 items, but 8 easy ones of each digit in training alone take 120.",
        ),
        (
            (175, 38, 37),
            15,
            "mnist has 20 easy items of digit 0, but 15 of each in training take 22; lower "
            "easy_per_digit or easy_confidence.",
        ),
        (
            (210, 45, 45),
            5,
            "mnist is to have 300 items, but only 260 are easy, ambiguous or hard; ask for fewer.",
        ),
    ],
)
def test_too_few_items(sizes: tuple[int, int, int], needed: int, message: str):
    with pytest.raises(InputError) as mistake:
        select(*offered(20, 3, 3), sizes, needed, 0, "mnist")
    assert str(mistake.value) == message
