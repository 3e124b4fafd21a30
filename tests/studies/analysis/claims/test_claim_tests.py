"""How claims are judged, against scipy, statsmodels and enumeration, and where the answer is known
by hand.
"""

import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from studies.analysis.claims.claim_tests import (
    judge_difference,
    judge_equality,
    judge_level,
    judge_trend,
)
from studies.analysis.claims.claim_values import jackknife_by_seed
from studies.analysis.claims.family_tests import judge_cells

OUTCOMES = {"supported", "not supported", "undecided"}


def pairs(a, b) -> dict:
    return {(seed,): (float(x), float(y)) for seed, (x, y) in enumerate(zip(a, b, strict=True))}


def sample(number: int, size: int = 8, shift: float = 0.0):
    rng = np.random.default_rng(number)
    b = rng.normal(size=size)
    return b + shift + rng.normal(size=size) * 0.5, b


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("side", ["less", "greater"])
def test_a_difference_is_judged_by_both_one_sided_wilcoxon_tests(number: int, side):
    a, b = sample(number, shift=(number - 2.5) / 3)
    verdict = judge_difference(pairs(a, b), side)
    for_it = stats.wilcoxon(a, b, alternative=side, method="exact")[1]
    against = stats.wilcoxon(
        a, b, alternative={"less": "greater", "greater": "less"}[side], method="exact"
    )[1]
    expected = (
        "supported" if for_it <= 0.05 else "not supported" if against <= 0.05 else "undecided"
    )
    assert verdict.outcome == expected
    assert verdict.numbers["p"] == pytest.approx(for_it)
    assert verdict.numbers["estimate"] == pytest.approx((a - b).mean())
    assert f"Wilcoxon p {for_it:.4g}" in verdict.statistic


def test_five_seeds_that_agree_are_enough_and_four_are_not():
    a, b = np.arange(5.0), 1 + 2 * np.arange(5.0)
    assert judge_difference(pairs(a, b), "less").outcome == "supported"
    assert judge_difference(pairs(a, b), "greater").outcome == "not supported"
    four = judge_difference(pairs(a[:4], b[:4]), "less")
    assert four.outcome == "undecided"
    assert "cannot reach a p below 0.0625" in four.reason


def test_ties_decide_nothing_and_count_for_nothing():
    same = judge_difference(pairs([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]), "less")
    assert (same.outcome, same.reason, same.numbers["p"]) == ("undecided", "no pair differs", 1)
    one_tie = judge_difference(pairs([1, 2, 3, 4, 5], [1, 3, 5, 7, 9]), "less")
    assert one_tie.outcome == "undecided"
    assert "4 pairs with a difference cannot reach" in one_tie.reason
    assert "4 of 5 seeds agree" in one_tie.statistic


@pytest.mark.parametrize(
    "judgement", [lambda p: judge_difference(p, "less"), lambda p: judge_equality(p, 0.1)]
)
def test_one_pair_decides_nothing(judgement):
    verdict = judgement({(0,): (1.0, 2.0)})
    assert verdict.outcome == "undecided"
    assert "one pair only" in verdict.reason


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("margin", [0.1, 0.5, 1.5])
def test_equality_is_the_two_one_sided_t_tests_of_statsmodels(number: int, margin: float):
    a, b = sample(number, shift=number / 6)
    verdict = judge_equality(pairs(a, b), margin)
    p = ttost_paired(a, b, -margin, margin)[0]
    assert verdict.numbers["p"] == pytest.approx(p)
    assert (verdict.outcome == "supported") == (p <= 0.05)
    low, high = stats.t.interval(0.9, 7, (a - b).mean(), stats.sem(a - b))
    assert (verdict.numbers["low"], verdict.numbers["high"]) == (
        pytest.approx(low),
        pytest.approx(high),
    )
    assert (verdict.outcome == "not supported") == (low > margin or high < -margin)


def test_a_margin_is_the_line_between_equal_and_not():
    a, b = [1.01, 0.99, 1.02, 1.0, 1.01], [1.0] * 5
    assert judge_equality(pairs(a, b), 0.05).outcome == "supported"
    assert judge_equality(pairs(a, b), 0.005).outcome == "undecided"
    assert judge_equality(pairs(np.array(a) + 1, b), 0.05).outcome == "not supported"
    # no spread at all: the interval is a point
    assert judge_equality(pairs(b, b), 0.0).outcome == "supported"


@pytest.mark.parametrize(
    ("bound", "above"), [(0.9, "supported"), (0.93, "undecided"), (0.99, "not supported")]
)
def test_a_level_is_judged_by_the_interval_of_its_mean(bound: float, above: str):
    values = {(seed,): value for seed, value in enumerate((0.92, 0.925, 0.93, 0.935, 0.945))}
    assert judge_level(values, bound, "above").outcome == above
    below = {"supported": "not supported", "not supported": "supported", "undecided": "undecided"}[
        above
    ]
    verdict = judge_level(values, bound, "below")
    assert verdict.outcome == below
    sample = list(values.values())
    reference = stats.t.interval(0.95, 4, np.mean(sample), stats.sem(sample))
    assert (verdict.numbers["low"], verdict.numbers["high"]) == (
        pytest.approx(reference[0]),
        pytest.approx(reference[1]),
    )
    assert (verdict.numbers["lowest"], verdict.numbers["highest"]) == (0.92, 0.945)


def test_a_level_of_fewer_than_five_seeds_is_undecided():
    for number in range(1, 5):
        verdict = judge_level({(seed,): 5.0 + seed for seed in range(number)}, 0, "above")
        assert verdict.outcome == "undecided"
        assert f"with {number} seeds" in verdict.reason


def test_a_family_like_the_papers_is_supported_though_holm_rejects_nothing():
    """Twelve cells of five seeds, all in favour, nine of them in every seed: Table 1."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=5)
    gains = np.abs(rng.normal(1, 0.1, size=(12, 5)))
    gains[:3, 0] = -0.1
    verdict = judge_cells([(pairs(base - gain, base), "") for gain in gains], "less")
    assert verdict.outcome == "supported"
    numbers = verdict.numbers
    assert (
        numbers["cells"],
        numbers["cells_in_favour"],
        numbers["cells_unanimous"],
        numbers["cells_holm"],
    ) == (12, 12, 9, 0)
    assert numbers["least_p_holm"] == pytest.approx(12 / 32)
    assert numbers["p"] == 1 / 32
    assert (
        judge_cells([(pairs(base - gain, base), "") for gain in gains], "greater").outcome
        == "not supported"
    )


def test_a_family_with_a_cell_against_it_is_undecided_and_with_a_certain_one_mixed():
    rng = np.random.default_rng(1)
    for size, against, outcome in ((6, 0.1, "undecided"), (10, 1.0, "mixed")):
        base = rng.normal(size=size)
        cells = [(pairs(base - rng.uniform(1, 2, size), base), "") for _ in range(5)]
        cells.append((pairs(base + rng.uniform(0.5, 1, size) * against, base), ""))
        verdict = judge_cells(cells, "less")
        assert verdict.outcome == outcome
        assert verdict.numbers["cells_in_favour"] == 5
        if outcome == "undecided":
            assert "1 of 6 cells do not favour it" in verdict.reason


def test_a_family_does_not_depend_on_units_and_takes_seeds_that_all_cells_have():
    rng = np.random.default_rng(2)
    base, gains = rng.normal(size=6), rng.normal(0.4, 1, size=(3, 6))
    cells = [(pairs(base + gain, base), "") for gain in gains]
    scaled = [
        (pairs((base + gain) * scale, base * scale), "")
        for gain, scale in zip(gains, (1, 1000, 1e-3), strict=True)
    ]
    assert judge_cells(cells, "greater").numbers["p"] == judge_cells(scaled, "greater").numbers["p"]
    one = dict(list(cells[0][0].items())[:4])
    fewer = judge_cells([(one, ""), *cells[1:]], "greater")
    assert (fewer.outcome, fewer.numbers["n"]) == ("undecided", 4)
    assert "4 seeds cannot reach" in fewer.reason


def page_p(table: np.ndarray) -> float:
    """Page's test by counting all orders of every row."""
    order = np.arange(1, table.shape[1] + 1)
    observed = (stats.rankdata(table, axis=1) * order).sum()
    rows = [np.dot(row, order) for row in permutations(order)]
    return float(
        np.mean([sum(chosen) >= observed - 1e-9 for chosen in product(rows, repeat=len(table))])
    )


@pytest.mark.parametrize("number", range(5))
def test_a_trend_is_pages_test_by_enumeration(number: int):
    table = np.random.default_rng(number).normal(size=(3, 4)) + np.arange(4) * (number - 1)
    rising, falling = (
        judge_trend(table, list("abcd"), direction) for direction in ("rising", "falling")
    )
    assert rising.numbers["p"] == pytest.approx(page_p(table))
    assert falling.numbers["p"] == pytest.approx(page_p(-table))
    in_order = bool((np.diff(table.mean(0)) > 0).all())
    assert (rising.outcome == "supported") == (in_order and page_p(table) <= 0.05)
    assert (falling.outcome == "not supported") == (page_p(table) <= 0.05)


def test_a_trend_whose_means_are_not_in_order_is_undecided_and_says_where():
    table = np.array([[1, 3, 2, 4]] * 6) + np.arange(6)[:, None] / 10
    verdict = judge_trend(table, ["1", "5", "10", "50"], "rising")
    assert verdict.numbers["p"] < 0.05
    assert (verdict.outcome, verdict.reason) == (
        "undecided",
        "the means are not in order (5 to 10)",
    )
    assert judge_trend(table[:1], ["1", "5", "10", "50"], "rising").outcome == "undecided"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=2, max_size=8),
    st.floats(0.01, 5),
)
def test_a_claim_and_its_opposite_are_never_both_supported(values, margin):
    of = {(seed,): pair for seed, pair in enumerate(values)}
    less, greater = judge_difference(of, "less"), judge_difference(of, "greater")
    assert {less.outcome, greater.outcome} in ({"undecided"}, {"supported", "not supported"})
    narrow, wide = judge_equality(of, margin), judge_equality(of, 2 * margin)
    assert {narrow.outcome, wide.outcome} <= OUTCOMES
    assert not (narrow.outcome == "supported" and wide.outcome != "supported")


@pytest.mark.parametrize("number", [3, 5, 10])
def test_jackknife_values_of_sums_are_twice_their_terms_and_their_mean_is_that_over_pairs(
    number: int,
):
    terms = np.random.default_rng(number).normal(size=number)
    of_pairs = {(i, j): terms[i] + terms[j] for i in range(number) for j in range(i + 1, number)}
    values = jackknife_by_seed(of_pairs)
    assert list(values) == [(i,) for i in range(number)]
    assert list(values.values()) == pytest.approx(2 * terms)
    assert np.mean(list(values.values())) == pytest.approx(np.mean(list(of_pairs.values())))


def test_jackknife_needs_three_seeds_and_every_pair():
    assert all(map(math.isnan, jackknife_by_seed({(0, 1): 0.5}).values()))
    assert all(map(math.isnan, jackknife_by_seed({(0, 1): 0.5, (0, 2): 0.5}).values()))
