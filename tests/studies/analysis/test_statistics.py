"""The statistics against scipy, statsmodels, enumeration and hand-computed cases, and the laws that
they obey.
"""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from core.errors import InputError
from core.randomness import generator
from studies.analysis import statistics

ALTERNATIVES = ("two-sided", "less", "greater")
PAIRED = {
    "paired_t": statistics.paired_t,
    "paired_wilcoxon": statistics.paired_wilcoxon,
    "direction_agreement": lambda a, b: statistics.direction_agreement(a, b, better="lower"),
    "bootstrap_interval": statistics.bootstrap_interval,
    "effect_size": statistics.effect_size,
}

law = settings(max_examples=100, deadline=None, derandomize=True)


def normal_pair(seeds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=seeds)
    return shared + rng.normal(0.3, 0.5, size=seeds), shared


@st.composite
def pairs(draw, most: int = 9, largest: int = 5):
    """Whole numbers, so that ties and zero differences are common and sums are exact."""
    seeds = draw(st.integers(2, most))
    numbers = st.lists(st.integers(-largest, largest), min_size=seeds, max_size=seeds)
    return np.array(draw(numbers), dtype=float), np.array(draw(numbers), dtype=float)


# Summary


def test_summary_agrees_with_numpy():
    values = np.random.default_rng(0).normal(3, 2, size=17)
    assert statistics.summary(values) == pytest.approx(
        (values.mean(), values.std(ddof=1), 17), rel=1e-13
    )


def test_summary_of_one_value_has_no_sd():
    mean, sd, n = statistics.summary([0.7])
    assert (mean, n) == (0.7, 1)
    assert math.isnan(sd)


def test_summary_of_equal_values_is_exact():
    assert statistics.summary([0.1] * 7) == (0.1, 0.0, 7)


# Paired t-test and effect size


@pytest.mark.parametrize("seeds", [2, 5, 10, 200])
def test_paired_t_agrees_with_scipy(seeds):
    a, b = normal_pair(seeds, seed=seeds)
    ours, reference = statistics.paired_t(a, b), stats.ttest_rel(a, b)
    assert (ours.statistic, ours.p) == pytest.approx(
        (reference.statistic, reference.pvalue), rel=1e-10
    )
    assert ours.n == seeds
    assert math.isnan(ours.minimum_p)


def test_paired_t_without_spread():
    assert statistics.paired_t([0.1, 0.2, 0.7], [0.1, 0.2, 0.7])[:2] == (0.0, 1.0)
    assert statistics.paired_t([0.1, 0.2, 0.7], [0.2, 0.3, 0.8])[:2] == (-math.inf, 0.0)


def test_effect_size_by_hand():
    assert statistics.effect_size([3, 5, 7, 9], [1, 1, 1, 1]) == pytest.approx(
        5 / math.sqrt(20 / 3), rel=1e-13
    )


def test_effect_size_without_spread():
    assert statistics.effect_size([0.4, 0.4], [0.4, 0.4]) == 0.0
    assert statistics.effect_size([0.3, 0.2, 0.7], [0.2, 0.1, 0.6]) == math.inf
    assert statistics.effect_size([0.2, 0.1, 0.6], [0.3, 0.2, 0.7]) == -math.inf


@law
@given(pairs())
def test_t_is_the_effect_size_times_the_root_of_n(pair):
    reference = statistics.effect_size(*pair) * math.sqrt(len(pair[0]))
    assert statistics.paired_t(*pair).statistic == pytest.approx(reference)


# Wilcoxon


def share_of_sign_flips(differences: np.ndarray, alternative: str) -> float:
    """The p-value by its definition: over all signs of the non-zero differences, the share at least
    as extreme as what was seen.
    """
    kept = [d for d in differences if d != 0]
    sizes = [abs(d) for d in kept]
    ranks = [sum(other < size for other in sizes) + (sizes.count(size) + 1) / 2 for size in sizes]
    seen = sum(rank for rank, d in zip(ranks, kept, strict=True) if d > 0)
    sums = [
        sum(itertools.compress(ranks, positive))
        for positive in itertools.product([False, True], repeat=len(kept))
    ]
    less, greater = (
        sum(s <= seen for s in sums) / len(sums),
        sum(s >= seen for s in sums) / len(sums),
    )
    return {"less": less, "greater": greater, "two-sided": min(1.0, 2 * min(less, greater))}[
        alternative
    ]


@pytest.mark.parametrize(
    ("alternative", "p"), [("less", 0.03125), ("two-sided", 0.0625), ("greater", 1.0)]
)
def test_five_seeds_that_all_agree(alternative, p):
    test = statistics.paired_wilcoxon(
        [0.56, 0.55, 0.51, 0.53, 0.57], [0.58, 0.60, 0.55, 0.56, 0.61], alternative
    )
    assert test == (0.0, p, 0.0625 if alternative == "two-sided" else 0.03125, 5)


@pytest.mark.parametrize(
    ("differences", "p"),
    [([1, -2, -3, -4, -5], 2 / 32), ([-1, 2, -3, -4, -5], 3 / 32), ([1, 2, -3, -4, -5], 5 / 32)],
)
def test_five_seeds_of_which_some_disagree(differences, p):
    assert statistics.paired_wilcoxon(differences, np.zeros(5), "less").p == p


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("seeds", [2, 5, 10, 25, 45])
def test_wilcoxon_agrees_with_scipy(seeds, alternative):
    a, b = normal_pair(seeds, seed=seeds)
    ours, reference = (
        statistics.paired_wilcoxon(a, b, alternative),
        stats.wilcoxon(a, b, alternative=alternative, method="exact"),
    )
    most = seeds * (seeds + 1) / 2
    statistic = (
        min(ours.statistic, most - ours.statistic) if alternative == "two-sided" else ours.statistic
    )
    assert (statistic, ours.p) == pytest.approx((reference.statistic, reference.pvalue), rel=1e-10)


@law
@given(pairs(), st.sampled_from(ALTERNATIVES))
def test_wilcoxon_with_ties_and_zeros_is_the_share_of_sign_flips(pair, alternative):
    a, b = pair
    assert statistics.paired_wilcoxon(a, b, alternative).p == share_of_sign_flips(
        a - b, alternative
    )


def test_wilcoxon_of_25_tied_pairs_agrees_with_enumeration():
    differences = np.random.default_rng(3).integers(1, 9, size=25) * np.where(
        np.arange(25) % 4, -1, 1
    )
    ranks = stats.rankdata(np.abs(differences))
    halves = [
        np.array(list(itertools.product([0, 1], repeat=len(half)))) @ half
        for half in (ranks[:12], ranks[12:])
    ]
    seen = ranks[differences > 0].sum()
    at_most = np.searchsorted(np.sort(halves[0]), seen - halves[1], side="right").sum() / 2**25
    test = statistics.paired_wilcoxon(differences, np.zeros(25), "less")
    assert 1e-4 < at_most < 0.2
    assert test == (seen, at_most, 2.0**-25, 25)


def test_wilcoxon_drops_zero_differences():
    a, b = np.array([3.0, 1.0, 4.0, 1.5, 9.0]), np.array([1.0, 2.0, 0.5, 0.8, 5.0])
    padded = statistics.paired_wilcoxon(np.append(a, [7, 8]), np.append(b, [7, 8]), "greater")
    assert padded == statistics.paired_wilcoxon(a, b, "greater")
    assert (padded.n, padded.minimum_p) == (5, 2**-5)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_wilcoxon_of_equal_methods(alternative):
    assert statistics.paired_wilcoxon([0.1, 0.2, 0.3], [0.1, 0.2, 0.3], alternative) == (
        0.0,
        1.0,
        1.0,
        0,
    )
    assert statistics.paired_wilcoxon([0.1, 0.2], [0.1, 0.1], alternative).n == 1


@law
@given(pairs(most=30), st.sampled_from(ALTERNATIVES))
def test_wilcoxon_p_lies_between_its_minimum_and_one(pair, alternative):
    test = statistics.paired_wilcoxon(*pair, alternative)
    assert 0 < test.minimum_p <= test.p <= 1
    assert test.n == np.count_nonzero(pair[0] - pair[1])


@law
@given(st.integers(1, 40), st.sampled_from(ALTERNATIVES))
def test_the_minimum_p_is_attained(seeds, alternative):
    sign = -1 if alternative == "less" else 1
    test = statistics.paired_wilcoxon(
        np.append(0, sign * np.ones(seeds)), np.zeros(seeds + 1), alternative
    )
    assert test.p == test.minimum_p


@law
@given(pairs(largest=1000))
def test_rounding_breaks_no_ties(pair):
    """Accuracies are counts over items: dividing changes neither which differences are equal nor
    which are 0.
    """
    counts, shares = pair, [values / 1000 for values in pair]
    assert statistics.paired_wilcoxon(*shares) == statistics.paired_wilcoxon(*counts)
    assert PAIRED["direction_agreement"](*shares) == PAIRED["direction_agreement"](*counts)
    assert statistics.effect_size(*shares) == pytest.approx(
        statistics.effect_size(*counts), rel=1e-9
    )


def test_scores_that_differ_by_rounding_are_equal():
    assert statistics.paired_wilcoxon([0.1 + 0.2, 0.5, 0.9], [0.3, 0.4, 0.7]).n == 2
    assert (
        statistics.effect_size([0.1 + 0.2, 0.3], [0, 0])
        == -statistics.effect_size([0, 0], [0.1 + 0.2, 0.3])
        == math.inf
    )


def test_small_but_real_differences_are_kept():
    a = [1000 + 1e-7, 1000 + 2e-7, 1000 + 3e-7, 1000 - 4e-7]
    assert statistics.paired_wilcoxon(a, np.full(4, 1000.0)) == (6.0, 0.875, 0.125, 4)


def test_a_diverged_seed_does_not_drown_the_others():
    a, b = [0.5, 1e15, 0.4, 0.2], [0.6, 0.6, 0.6, 0.5]
    assert statistics.direction_agreement(a, b, better="lower") == (3, 4)
    assert statistics.paired_wilcoxon(a, b) == (4.0, 0.875, 0.125, 4)


# Laws of all paired comparisons


@law
@given(pairs())
def test_swapping_the_methods_mirrors_everything(pair):
    a, b = pair
    forward, backward = statistics.paired_t(a, b), statistics.paired_t(b, a)
    assert (forward.statistic, forward.p) == pytest.approx((-backward.statistic, backward.p))
    assert statistics.effect_size(a, b) == -statistics.effect_size(b, a)
    less, greater = (
        statistics.paired_wilcoxon(a, b, "less"),
        statistics.paired_wilcoxon(b, a, "greater"),
    )
    assert less[1:] == greater[1:]
    assert less.statistic + greater.statistic == less.n * (less.n + 1) / 2
    assert statistics.paired_wilcoxon(a, b).p == statistics.paired_wilcoxon(b, a).p
    low, high = statistics.bootstrap_interval(a, b, resamples=200)
    assert statistics.bootstrap_interval(b, a, resamples=200) == pytest.approx(
        (-high, -low), abs=1e-9
    )


@law
@given(pairs(), st.integers(-1000, 1000))
def test_a_constant_added_to_both_methods_changes_nothing(pair, constant):
    for compare in PAIRED.values():
        assert compare(*(values + constant for values in pair)) == pytest.approx(
            compare(*pair), nan_ok=True
        )


@law
@given(pairs(), st.randoms(use_true_random=False))
def test_the_order_of_the_seeds_does_not_matter(pair, random):
    order = random.sample(range(len(pair[0])), len(pair[0]))
    for name in PAIRED.keys() - {"bootstrap_interval"}:
        assert PAIRED[name](*(values[order] for values in pair)) == pytest.approx(
            PAIRED[name](*pair), nan_ok=True
        )


@law
@given(pairs())
def test_seeds_are_wins_losses_or_ties(pair):
    wins, total = statistics.direction_agreement(*pair, better="lower")
    losses, _ = statistics.direction_agreement(*pair, better="higher")
    assert wins + losses + np.count_nonzero(pair[0] == pair[1]) == total == len(pair[0])
    assert statistics.direction_agreement(*pair[::-1], better="lower") == (losses, total)


def test_direction_agreement_by_hand():
    a, b = [0.50, 0.40, 0.30, 0.60], [0.55, 0.45, 0.30, 0.50]
    assert statistics.direction_agreement(a, b, better="lower") == (2, 4)
    assert statistics.direction_agreement(a, b, better="higher") == (1, 4)


# Holm


def test_no_cell_of_the_basins_paper_survives_holm():
    """12 cells over 5 seeds (its table 1): even where all seeds agree, 12 x 0.03125 is far from
    0.05. With 8 seeds it would not be.
    """
    adjusted = statistics.holm([0.03125, 0.03125, 0.063, 0.094, 0.063, *[0.03125] * 7])
    assert adjusted.tolist() == [0.375] * 12
    assert statistics.holm([2**-8] * 12).max() < 0.05


def test_holm_by_hand():
    assert statistics.holm([0.04, 0.01, 0.9, 0.03]).tolist() == pytest.approx(
        [0.09, 0.04, 0.9, 0.09]
    )
    assert statistics.holm([0.6, 0.7]).tolist() == [1.0, 1.0]
    assert statistics.holm([]).tolist() == []


p_values = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.03125, 0.0625, 1.0])),
    min_size=1,
    max_size=15,
)


@pytest.mark.parametrize("cells", [1, 2, 5, 12, 40])
def test_holm_agrees_with_statsmodels(cells):
    raw = np.random.default_rng(cells).beta(0.3, 3, size=cells).round(2)
    np.testing.assert_allclose(
        statistics.holm(raw), multipletests(raw, method="holm")[1], rtol=1e-12
    )


@law
@given(p_values)
def test_holm_is_its_definition(raw):
    """The largest, over all p that are no larger than one's own, of p times the number of tests
    with that p or a larger one.
    """
    expected = [max(min(1, q * sum(r >= q for r in raw)) for q in raw if q <= p) for p in raw]
    assert statistics.holm(raw).tolist() == expected


@law
@given(p_values)
def test_holm_only_raises_p_values_and_keeps_their_order(raw):
    adjusted = statistics.holm(raw)
    assert np.all((adjusted >= raw) & (adjusted <= 1))
    assert np.all(np.diff(adjusted[np.argsort(raw)]) >= 0)


@law
@given(p_values, st.data())
def test_holm_passes_nan_through_and_does_not_count_it(raw, data):
    gaps = data.draw(st.lists(st.integers(0, len(raw)), max_size=5))
    with_gaps = np.insert(raw, gaps, np.nan)
    adjusted = statistics.holm(with_gaps)
    assert np.isnan(adjusted).tolist() == np.isnan(with_gaps).tolist()
    assert adjusted[~np.isnan(with_gaps)].tolist() == statistics.holm(raw).tolist()


# Bootstrap


def scipy_interval(
    values: np.ndarray, confidence: float, resamples: int, seed: int
) -> tuple[float, float]:
    """scipy's BCa interval out of the very same resamples."""
    drawn = values[
        generator(seed, "bootstrap").integers(len(values), size=(resamples, len(values)))
    ]
    earlier = SimpleNamespace(bootstrap_distribution=drawn.mean(1))
    result = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=0,
        bootstrap_result=earlier,
        confidence_level=confidence,
        method="BCa",
    )
    return tuple(result.confidence_interval)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_bootstrap_agrees_with_scipy(confidence):
    skewed, whole = (
        np.random.default_rng(5).exponential(size=20),
        np.array([3.0, 1.0, 4.0, 1.0, 15.0]),
    )
    for values in (skewed, whole):
        ours = statistics.bootstrap_interval(values, confidence=confidence, resamples=2000, seed=6)
        assert ours == pytest.approx(
            scipy_interval(values, confidence, resamples=2000, seed=6), rel=1e-9
        )


def test_bootstrap_agrees_with_scipy_on_other_resamples():
    values = np.random.default_rng(7).exponential(size=12)
    reference = stats.bootstrap(
        (values,), np.mean, n_resamples=50_000, rng=np.random.default_rng(8)
    ).confidence_interval
    low, high = statistics.bootstrap_interval(values, resamples=50_000)
    assert (low, high) == pytest.approx(tuple(reference), abs=0.03 * (high - low))


def test_bootstrap_of_pairs_is_that_of_their_differences():
    a, b = normal_pair(10, seed=9)
    assert statistics.bootstrap_interval(a, b) == pytest.approx(
        statistics.bootstrap_interval(a - b), rel=1e-12
    )


def test_bootstrap_depends_on_its_seed_alone():
    a, b = normal_pair(10, seed=10)
    first = statistics.bootstrap_interval(a, b, seed=1)
    assert statistics.bootstrap_interval(a, b, seed=1) == first
    assert statistics.bootstrap_interval(a, b, seed=2) != first


def test_bootstrap_without_spread_is_a_point():
    assert statistics.bootstrap_interval([0.1] * 5) == (0.1, 0.1)
    assert statistics.bootstrap_interval([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]) == (0.0, 0.0)
    low, high = statistics.bootstrap_interval([0.3, 0.2, 0.7], [0.2, 0.1, 0.6])
    assert low == high == pytest.approx(0.1)


@law
@given(pairs(), st.sampled_from([0.5, 0.9, 0.999, 1 - 1e-14]))
def test_bootstrap_stays_within_the_values_and_widens_with_confidence(pair, confidence):
    differences = pair[0] - pair[1]
    low, high = statistics.bootstrap_interval(*pair, confidence=confidence, resamples=500)
    narrow_low, narrow_high = statistics.bootstrap_interval(
        *pair, confidence=confidence / 2, resamples=500
    )
    assert differences.min() - 1e-9 <= low <= narrow_low + 1e-9
    assert narrow_high - 1e-9 <= high <= differences.max() + 1e-9


def test_bootstrap_of_an_outlier_at_extreme_confidence_spans_its_resamples():
    low, high = statistics.bootstrap_interval(
        [0.0] * 9 + [1.0], confidence=1 - 1e-14, resamples=1000
    )
    assert 0 <= low < 0.1 < 0.3 < high <= 1


@pytest.mark.parametrize(
    ("seeds", "least", "most"), [(5, 0.79, 0.90), (20, 0.90, 0.96), (80, 0.92, 0.98)]
)
def test_bootstrap_coverage_of_normal_values(seeds, least, most):
    """Four standard errors of 600 simulations around what is known of BCa: too narrow for few
    values, right for many.
    """
    samples = np.random.default_rng(seeds).normal(2, 3, size=(600, seeds))
    intervals = np.array(
        [
            statistics.bootstrap_interval(values, resamples=1000, seed=seed)
            for seed, values in enumerate(samples)
        ]
    )
    assert least < np.mean((intervals[:, 0] <= 2) & (intervals[:, 1] >= 2)) < most


# Bad input


@pytest.mark.parametrize("compare", PAIRED.values(), ids=PAIRED.keys())
@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1, 2, 3], [1, 2], "a has 3 values and b has 2; pairs need one of each for every seed."),
        ([1], [2], "a has 1 value; it must have at least 2."),
        ([1, 2], [], "b has 0 values; it must have at least 2."),
        (
            [1, 2, math.nan],
            [1, 2, 3],
            "a is NaN or infinite in row 2; it must be finite for every seed.",
        ),
        (
            [1, 2, 3],
            [math.inf, 2, None],
            "b is NaN or infinite in rows 0, 2; it must be finite for every seed.",
        ),
        ([[1, 2], [3, 4]], [1, 2], r"a has shape \(2, 2\); it must be one value per seed."),
    ],
)
def test_bad_pairs(compare, a, b, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        compare(a, b)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: statistics.summary([]), "values has 0 values; it must have at least 1."),
        (
            lambda: statistics.summary([1, math.nan]),
            "values is NaN or infinite in row 1; it must be finite for every seed.",
        ),
        (lambda: statistics.summary(3), r"values has shape \(\); it must be one value per seed."),
        (
            lambda: statistics.paired_wilcoxon([1, 2], [1, 2], "lower"),
            "alternative is lower; it must be two-sided, less or greater.",
        ),
        (
            lambda: statistics.direction_agreement([1, 2], [1, 2], "less"),
            "better is less; it must be lower or higher.",
        ),
        (
            lambda: statistics.holm([[0.1]]),
            r"p_values has shape \(1, 1\); a family must be one list of p-values.",
        ),
        (
            lambda: statistics.holm([0.1, 1.2, math.nan, -0.1]),
            "p_values is outside 0 to 1 in rows 1, 3; a p-value is a probability, or NaN where "
            "there was no test.",
        ),
        (lambda: statistics.bootstrap_interval([1]), "a has 1 value; it must have at least 2."),
        (
            lambda: statistics.bootstrap_interval([1, 2], confidence=95),
            "confidence is 95; it must lie between 0 and 1.",
        ),
        (
            lambda: statistics.bootstrap_interval([1, 2], resamples=10),
            "resamples is 10; it must be at least 100.",
        ),
        (
            lambda: statistics.bootstrap_interval([1, 2], seed=-1),
            "seed is -1; it must be 0 or larger.",
        ),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        call()
