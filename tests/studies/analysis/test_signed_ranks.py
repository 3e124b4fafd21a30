"""Chances of signed rank sums: the exact ones against enumeration, and how near the approximation
for very many pairs comes to the exact ones.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import rankdata

from studies.analysis import signed_ranks
from studies.analysis.signed_ranks import EXACT_PAIRS, exact_chances, saddlepoint_tail, tails
from studies.analysis.statistics import Test, paired_wilcoxon
from studies.tables.captions import way_of_p

N = EXACT_PAIRS + 1
RNG = np.random.default_rng(0)
SMOOTH = {  # magnitudes with at least 50 different ranks
    "no ties": np.arange(N),
    "one tie": np.append(np.arange(N - 1), 0),
    "ties everywhere": RNG.integers(0, 50, N),
    "the lower half tied": np.maximum(np.arange(N), N // 2),
    "the upper half tied": np.minimum(np.arange(N), N // 2),
}
LUMPY = {f"{kinds} magnitudes": np.arange(N) % kinds for kinds in (2, 3, 4, 6)} | {
    "nine of ten tied": np.maximum(np.arange(N), 9 * N // 10),
}


def twice_ranks(magnitudes: np.ndarray) -> np.ndarray:
    return np.rint(2 * rankdata(magnitudes)).astype(int)


def errors(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The exact chances of some 300 upper tails above 1e-12 and below 1, and the approximation's
    absolute and relative errors.
    """
    chances = exact_chances(ranks)
    exact = np.cumsum(chances[::-1])[::-1]
    places = np.flatnonzero((chances > 0) & (exact > 1e-12) & (exact < 1 - 1e-12))
    places = places[np.unique(np.linspace(0, len(places) - 1, 300).astype(int))]
    nearly = np.array([saddlepoint_tail(ranks, place) for place in places])
    return exact[places], nearly - exact[places], nearly / exact[places] - 1


@given(st.lists(st.integers(1, 30), min_size=1, max_size=10), st.data())
def test_exact_chances_are_shares_of_all_signs(ranks: list[int], data: st.DataObject):
    sums = [sum(signs) for signs in itertools.product(*((0, rank) for rank in ranks))]
    counted = np.bincount(sums, minlength=sum(ranks) + 1) / len(sums)
    np.testing.assert_array_equal(exact_chances(np.array(ranks)), counted)
    observed = data.draw(st.integers(0, sum(ranks)))
    less, greater = tails(np.array(ranks), observed)
    assert less == sum(total <= observed for total in sums) / len(sums)
    assert greater == sum(total >= observed for total in sums) / len(sums)


@pytest.mark.parametrize("name", SMOOTH)
def test_the_approximation_is_near_every_tail(name: str):
    exact, absolute, relative = errors(twice_ranks(SMOOTH[name]))
    assert exact.min() < 1e-11
    assert abs(absolute).max() < 1e-6
    assert abs(relative).max() < 1e-4


@pytest.mark.parametrize("name", LUMPY)
def test_the_approximation_is_within_a_lump_where_few_ranks_differ(name: str):
    exact, absolute, relative = errors(twice_ranks(LUMPY[name]))
    assert abs(absolute).max() < 0.01
    assert abs(relative[exact <= 0.5]).max() < 0.15


def test_the_normal_approximation_would_not_do():
    ranks = twice_ranks(SMOOTH["no ties"])
    chances = exact_chances(ranks)
    exact = np.cumsum(chances[::-1])[::-1]
    place = np.flatnonzero(exact > 1e-12)[-1]
    z = (place - 1 - ranks.sum() / 2) / np.sqrt((ranks**2).sum() / 4)
    assert ndtr(-z) / exact[place] > 1.5


@pytest.mark.parametrize("pairs", [2_500, 25_000])
def test_many_pairs(pairs: int):
    """Both tails and their sides belong together, whatever was observed."""
    ranks = 2 * np.arange(1, pairs + 1)
    total = int(ranks.sum())
    before = 1.0
    for observed in range(0, total + 1, 2 * (total // 200)):
        less, greater = tails(ranks, observed)
        assert 0 <= greater <= before
        assert tails(ranks, total - observed) == (greater, less)
        assert less + greater == pytest.approx(1, abs=1e-3)
        before = greater


def test_wilcoxon_does_not_jump_where_it_stops_being_exact(monkeypatch: pytest.MonkeyPatch):
    a = np.random.default_rng(3).normal(0.1, 1, EXACT_PAIRS)
    for alternative in ("two-sided", "less", "greater"):
        exact = paired_wilcoxon(a, np.zeros(len(a)), alternative)
        monkeypatch.setattr(signed_ranks, "EXACT_PAIRS", 10)
        nearly = paired_wilcoxon(a, np.zeros(len(a)), alternative)
        monkeypatch.undo()
        assert exact.p != nearly.p
        assert nearly.p == pytest.approx(exact.p, rel=1e-4)
        assert nearly[2:] == exact[2:]


def test_all_differences_of_one_sign_among_very_many():
    a = np.arange(1.0, 1_001.0)
    one_sided = paired_wilcoxon(a, np.zeros(1000), "greater")
    assert 2.0**-1000 <= one_sided.p < 1e-160
    assert paired_wilcoxon(a, np.zeros(1000), "less").p == 1
    assert paired_wilcoxon(np.full(3000, 2.0), np.zeros(3000), "greater").p < 1e-300


def test_captions_say_how_p_was_made():
    few, many = Test(1.0, 0.5, 0.1, EXACT_PAIRS), Test(1.0, 0.5, 0.0, EXACT_PAIRS + 1)
    assert way_of_p("wilcoxon", [few]) == ", exact"
    assert way_of_p("wilcoxon", [few, many, many]) == (
        ", by a saddlepoint approximation beyond 500 pairs (in 2 of 3 tests) and exact up to that"
    )
    assert way_of_p("t", [many]) == ""
