"""How a claim about numbers is judged: supported, not supported, or undecided at this power.

Numbers come per seed, with their `spread` over items and votes where runs keep predictions
(`studies.analysis.uncertainty`); else with the words why they do not, and tests are over seeds
alone. Every rule is symmetric: what would have contradicted a claim is asked at the same level as
what supports it.
"""

import math
from typing import Literal

import numpy as np
from scipy.stats import page_trend_test

from studies.analysis.claims.verdict import Pairs, Verdict, columns, decide, one_pair_only
from studies.analysis.signed_ranks import EXACT_PAIRS
from studies.analysis.statistics import Test, direction_agreement, paired_wilcoxon
from studies.analysis.uncertainty.estimate import Estimate, estimate
from studies.analysis.uncertainty.needed import needed
from studies.analysis.uncertainty.spread import Spread

ALPHA = 0.05
Side = Literal["less", "greater"]
OPPOSITE: dict[str, Side] = {"less": "greater", "greater": "less"}


def judge_difference(pairs: Pairs, side: Side, spread: Spread | str = "") -> Verdict:
    """`less` or `greater`: a one-sided test reaches 5 %; contradicted if that of the opposite side
    does. It is the t-test over seeds, items and votes, or Wilcoxon's over seeds alone.

    >>> pairs = {(seed,): (seed, seed + 1.0 + seed / 10) for seed in range(5)}
    >>> judge_difference(pairs, "less").outcome
    'supported'
    """
    if len(pairs) < 2:
        return one_pair_only(pairs)
    a, b = columns(pairs)
    found = estimate(a - b, spread)
    for_it, against = (paired_wilcoxon(a, b, alternative) for alternative in (side, OPPOSITE[side]))
    p, p_against = for_it.p, against.p
    tested = f"one-sided Wilcoxon p {in_words(for_it)}"
    if found.items:
        p, p_against = found.p(side), found.p(OPPOSITE[side])
        tested = f"one-sided p {p:.4g} (Wilcoxon over seeds alone: {in_words(for_it)})"
    agree, of = direction_agreement(a, b, "lower" if side == "less" else "higher")
    low, high = found.interval()
    statistic = (
        f"mean difference {found.mean:.4g} (95 % interval {low:.4g} to {high:.4g} "
        f"{found.over}{because(found)}), {agree} of {of} seeds agree, {tested}{to_see(found)}"
    )
    reason = "neither direction reaches 5 %"
    if for_it.n == 0:
        reason = "no pair differs"
    elif for_it.minimum_p > ALPHA and not found.items:
        number = f"{for_it.n} pair{'s' * (for_it.n > 1)}"
        reason = f"{number} with a difference cannot reach a p below {for_it.minimum_p:.4g}"
    numbers = {"estimate": found.mean, "low": low, "high": high, "p": p, "n": of}
    numbers |= {"minimum_p": for_it.minimum_p} if not found.items else {}
    numbers |= numbers_needed(found)
    return decide(p <= ALPHA, p_against <= ALPHA, statistic, reason, numbers)


def in_words(test: Test) -> str:
    """The p of a Wilcoxon test, and that it is an approximation where it is.

    >>> in_words(Test(3.0, 0.125, 0.0625, 4)), in_words(Test(3.0, 0.125, 0.0, 2500))
    ('0.125', '0.125 (saddlepoint approximation)')
    """
    return f"{test.p:.4g}" + " (saddlepoint approximation)" * (test.n > EXACT_PAIRS)


def because(found: Estimate) -> str:
    """Why an interval is of seeds alone, where that is known."""
    return f", because {found.alone}" if found.alone else ""


def to_see(found: Estimate) -> str:
    """What it would take to see the difference that was found."""
    words = needed(found).in_words()
    return f"; {words}" if words else ""


def numbers_needed(found: Estimate) -> dict[str, float]:
    """The same for a CSV, with what there was."""
    wanted = needed(found)
    return {
        "items": found.items or math.nan,
        "votes_per_item": found.votes_per_item,
        "seeds_needed": wanted.seeds,
        "items_needed": wanted.items,
        "votes_needed": wanted.votes,
    }


def judge_equality(
    pairs: Pairs, margin: float, meaning: str = "", spread: Spread | str = ""
) -> Verdict:
    """`equal`: two one-sided t-tests at 5 %, which is to say that the 90 % interval of the mean
    difference lies within the margin; `meaning` says where that comes from.

    The t interval and not a bootstrap: with few seeds a bootstrap interval is too short, and would
    find parity too easily. Contradicted if the whole interval lies outside.

    >>> judge_equality({(seed,): (1.0 + 0.001 * seed, 1.0) for seed in range(5)}, 0.01).outcome
    'supported'
    """
    if len(pairs) < 2:
        return one_pair_only(pairs)
    a, b = columns(pairs)
    found = estimate(a - b, spread)
    low, high = found.interval(0.9)
    p = max(found.p("less", margin), found.p("greater", -margin))
    words = f" ({meaning})" if meaning else ""
    statistic = (
        f"mean difference {found.mean:.4g} (90 % interval {low:.4g} to {high:.4g} "
        f"{found.over}{because(found)}), margin ± {margin:.4g}{words}, "
        f"larger p of the two t-tests {p:.4g}{to_see(found)}"
    )
    numbers = {"estimate": found.mean, "low": low, "high": high, "p": p, "n": found.seeds}
    numbers |= {"margin": margin} | numbers_needed(found)
    inside, outside = -margin <= low and high <= margin, low > margin or high < -margin
    return decide(inside, outside, statistic, "the interval crosses the margin", numbers)


def judge_level(
    values: dict[tuple, float],
    bound: float,
    side: Literal["above", "below"],
    spread: Spread | str = "",
) -> Verdict:
    """`above` or `below`: the 95 % interval of the mean lies wholly on that side of a number;
    contradicted if wholly on the other.

    Where even all seeds on one side would be no rare chance (2^-n above 5 %, so fewer than 5
    seeds), nothing is decided by seeds alone.

    >>> judge_level({(seed,): 0.93 + seed / 1000 for seed in range(5)}, 0.9, "above").outcome
    'supported'
    """
    sample = np.array(list(values.values()))
    found = estimate(sample, spread)
    n, (low, high) = found.seeds, found.interval()
    lowest, highest = sample.min(), sample.max()
    where = f"{low:.4g} to {high:.4g} {found.over}{because(found)}"
    statistic = (
        f"mean {found.mean:.4g} over {n} seed{'s' * (n > 1)}"
        f"{f', 95 % interval {where}' if n > 1 else ''}, lowest {lowest:.4g}, "
        f"highest {highest:.4g}, against {bound:g}"
    )
    numbers = {"estimate": found.mean, "low": low, "high": high, "n": n}
    numbers |= {"bound": bound, "lowest": lowest, "highest": highest}
    if n < 2 or (2.0**-n > ALPHA and not found.items):
        reason = f"with {n} seeds all may lie on one side by chance"
        return Verdict("undecided", statistic, reason, numbers)
    is_above, is_below = low > bound, high < bound
    for_it, against = (is_above, is_below) if side == "above" else (is_below, is_above)
    return decide(for_it, against, statistic, f"the interval holds {bound:g}", numbers)


def judge_trend(
    table: np.ndarray, names: list[str], direction: Literal["rising", "falling"]
) -> Verdict:
    """`monotone`: the means over seeds are in order, level by level, and Page's trend test over
    seeds reaches 5 %; contradicted by the opposite trend.

    `table` is [seeds, levels]. Page's L asks whether values within seeds tend to follow the order;
    its distribution is exact for up to 8 levels and 12 seeds (20 of three levels), and values that
    tie make it careful rather than bold.

    >>> table = np.array([[1.0, 2, 3, 4], [2, 3, 5, 6]])
    >>> judge_trend(table, ["1", "5", "10", "50"], "rising").outcome
    'supported'
    """
    means = table.mean(0)
    shown = ", ".join(f"{name}: {mean:.4g}" for name, mean in zip(names, means, strict=True))
    numbers: dict[str, float] = {"n": len(table)}
    if len(table) < 2:
        reason = "there is one seed only, and a test takes at least 2"
        return Verdict("undecided", f"mean by level {shown}", reason, numbers)
    upward = table if direction == "rising" else -table
    for_it, against = (float(page_trend_test(t).pvalue) for t in (upward, -upward))
    steps = np.diff(upward.mean(0))
    statistic = f"means {shown}; Page's trend test p {for_it:.4g} over {len(table)} seeds alone"
    numbers |= {"p": for_it, "n": len(table)}
    out_of_order = [f"{names[i]} to {names[i + 1]}" for i in np.flatnonzero(steps <= 0)]
    reason = "the trend does not reach 5 %"
    if out_of_order:
        reason = f"the means are not in order ({', '.join(out_of_order)})"
    supported = not out_of_order and for_it <= ALPHA
    return decide(supported, against <= ALPHA, statistic, reason, numbers)
