"""How a claim about numbers is judged: supported, not supported, or undecided at this power.

Numbers come per seed. Every rule is symmetric: what would have contradicted a claim is asked at the
same level as what supports it.
"""

import math
from typing import Literal

import numpy as np
from scipy.special import stdtr, stdtrit
from scipy.stats import page_trend_test

from studies.analysis.claims.verdict import Pairs, Verdict, columns, decide, one_pair_only
from studies.analysis.signed_ranks import EXACT_PAIRS
from studies.analysis.statistics import (
    Test,
    bootstrap_interval,
    direction_agreement,
    holm,
    paired_wilcoxon,
    summary,
)

ALPHA = 0.05
Side = Literal["less", "greater"]
OPPOSITE: dict[str, Side] = {"less": "greater", "greater": "less"}


def judge_difference(pairs: Pairs, side: Side) -> Verdict:
    """`less` or `greater`: a one-sided Wilcoxon test over seeds reaches 5 %.

    Contradicted if the opposite side reaches 5 %.

    >>> pairs = {(seed,): (seed, seed + 1.0 + seed / 10) for seed in range(5)}
    >>> judge_difference(pairs, "less").outcome
    'supported'
    """
    if len(pairs) < 2:
        return one_pair_only(pairs)
    a, b = columns(pairs)
    for_it, against = (paired_wilcoxon(a, b, alternative) for alternative in (side, OPPOSITE[side]))
    mean, (low, high) = summary(a - b).mean, bootstrap_interval(a, b)
    agree, of = direction_agreement(a, b, "lower" if side == "less" else "higher")
    statistic = (
        f"mean difference {mean:.4g} (95 % bootstrap interval {low:.4g} to {high:.4g}), "
        f"{agree} of {of} seeds agree, one-sided Wilcoxon p {in_words(for_it)}"
    )
    reason = "neither direction reaches 5 %"
    if for_it.n == 0:
        reason = "no pair differs"
    elif for_it.minimum_p > ALPHA:
        number = f"{for_it.n} pair{'s' * (for_it.n > 1)}"
        reason = f"{number} with a difference cannot reach a p below {for_it.minimum_p:.4g}"
    numbers = {"estimate": mean, "low": low, "high": high}
    numbers |= {"p": for_it.p, "minimum_p": for_it.minimum_p, "n": of}
    return decide(for_it.p <= ALPHA, against.p <= ALPHA, statistic, reason, numbers)


def in_words(test: Test) -> str:
    """The p of a Wilcoxon test, and that it is an approximation where it is.

    >>> in_words(Test(3.0, 0.125, 0.0625, 4)), in_words(Test(3.0, 0.125, 0.0, 2500))
    ('0.125', '0.125 (saddlepoint approximation)')
    """
    return f"{test.p:.4g}" + " (saddlepoint approximation)" * (test.n > EXACT_PAIRS)


def judge_equality(pairs: Pairs, margin: float | str) -> Verdict:
    """`equal`: two one-sided paired t-tests at 5 %, which is to say that the 90 % t interval of the
    mean difference lies within the margin.

    The t interval and not a bootstrap: with few seeds a bootstrap interval is too short, and would
    find parity too easily. A margin such as "5 %" is that share of the reference's mean.
    Contradicted if the whole interval lies outside.

    >>> judge_equality({(seed,): (1.0 + 0.001 * seed, 1.0) for seed in range(5)}, "1 %").outcome
    'supported'
    """
    if len(pairs) < 2:
        return one_pair_only(pairs)
    a, b = columns(pairs)
    share = float(str(margin).rstrip("% ")) / 100 if isinstance(margin, str) else None
    limit = float(margin) if share is None else share * abs(float(b.mean()))
    mean, sd, n = summary(a - b)
    error = sd / math.sqrt(n)
    reach = float(stdtrit(n - 1, 1 - ALPHA)) * error
    low, high = mean - reach, mean + reach
    p = float(stdtr(n - 1, (abs(mean) - limit) / error)) if error else float(abs(mean) > limit)
    message = f"{limit:.4g}" if share is None else f"{limit:.4g} ({margin} of the reference's mean)"
    statistic = (
        f"mean difference {mean:.4g} (90 % t interval {low:.4g} to {high:.4g}), margin ± "
        f"{message}, larger p of the two t-tests {p:.4g}"
    )
    numbers = {"estimate": mean, "low": low, "high": high, "p": p, "n": n, "margin": limit}
    inside, outside = -limit <= low and high <= limit, low > limit or high < -limit
    return decide(inside, outside, statistic, "the interval crosses the margin", numbers)


def judge_level(
    values: dict[tuple, float], bound: float, side: Literal["above", "below"]
) -> Verdict:
    """`above` or `below`: the 95 % bootstrap (BCa) interval of the mean lies wholly on that side of
    a number; contradicted if wholly on the other.

    Where even all seeds on one side would be no rare chance (2^-n above 5 %, so fewer than 5
    seeds), nothing is decided.

    >>> judge_level({(seed,): 0.93 + seed / 1000 for seed in range(5)}, 0.9, "above").outcome
    'supported'
    """
    sample = np.array(list(values.values()))
    mean, _, n = summary(sample)
    low, high = bootstrap_interval(sample) if n > 1 else (math.nan, math.nan)
    lowest, highest = sample.min(), sample.max()
    spread = f", 95 % bootstrap interval {low:.4g} to {high:.4g}" if n > 1 else ""
    statistic = (
        f"mean {mean:.4g} over {n} seed{'s' * (n > 1)}{spread}, lowest {lowest:.4g}, "
        f"highest {highest:.4g}, against {bound:g}"
    )
    numbers = {"estimate": mean, "low": low, "high": high, "n": n}
    numbers |= {"bound": bound, "lowest": lowest, "highest": highest}
    if 2.0**-n > ALPHA:
        reason = f"with {n} seeds all may lie on one side by chance"
        return Verdict("undecided", statistic, reason, numbers)
    is_above, is_below = low > bound, high < bound
    for_it, against = (is_above, is_below) if side == "above" else (is_below, is_above)
    return decide(for_it, against, statistic, f"the interval holds {bound:g}", numbers)


def judge_family(cells: list[Pairs], side: Side) -> Verdict:
    """`family`: a claim about every one of several cells (methods by numbers of votes, say), with
    one test for all of them together.

    Holm's correction over many cells cannot reject anything with five seeds, so it cannot be the
    rule. Instead each seed gets one number: its mean over cells of the difference in units of that
    cell's root mean square (which does not depend on signs, so that the test stays valid), and
    these numbers are tested as in `less` and `greater`. Supported: every cell favours the claim in
    the mean, and that test reaches 5 %. Contradicted: the opposite test reaches 5 %, or some cell
    by itself does in the opposite direction after Holm. How many cells favour the claim, in how
    many all seeds agree, and in how many Holm's p reaches 5 % is always shown.
    """
    seeds = [seed for seed in cells[0] if all(seed in pairs for pairs in cells)]
    if min(len(pairs) for pairs in cells) < 2 or len(seeds) < 2:
        return Verdict(
            "undecided",
            reason="fewer than two seeds have a value in every cell",
            numbers={"n": len(seeds), "cells": len(cells)},
        )
    compared = [columns(pairs) for pairs in cells]
    sign = -1 if side == "less" else 1
    favouring = sum(sign * (a - b).mean() > 0 for a, b in compared)
    wanted = "lower" if side == "less" else "higher"
    agreements = [direction_agreement(a, b, wanted) for a, b in compared]
    unanimous = sum(agree == of for agree, of in agreements)
    by_side = {s: [paired_wilcoxon(a, b, s).p for a, b in compared] for s in OPPOSITE.values()}
    adjusted = {s: holm(p_values) for s, p_values in by_side.items()}
    rejected, contradicted = (int(np.sum(adjusted[s] <= ALPHA)) for s in (side, OPPOSITE[side]))
    differences = np.array([[a - b for a, b in (pairs[seed] for seed in seeds)] for pairs in cells])
    scale = np.sqrt(np.square(differences).mean(1, keepdims=True))
    scaled = np.divide(differences, scale, out=np.zeros_like(differences), where=scale > 0)
    together, zeros = scaled.mean(0), np.zeros(len(seeds))
    for_it, against = (paired_wilcoxon(together, zeros, s) for s in (side, OPPOSITE[side]))
    statistic = (
        f"{favouring} of {len(cells)} cells favour it, in {unanimous} all seeds agree, Holm's p "
        f"reaches 5 % in {rejected}; all cells together: one-sided Wilcoxon p {in_words(for_it)} "
        f"over {len(seeds)} seeds"
    )
    numbers = {"p": for_it.p, "minimum_p": for_it.minimum_p, "n": len(seeds)}
    numbers |= {"cells": len(cells), "cells_in_favour": favouring, "cells_unanimous": unanimous}
    numbers |= {"cells_holm": rejected, "least_p_holm": float(adjusted[side].min())}
    if for_it.minimum_p > ALPHA:
        reason = f"{for_it.n} seeds cannot reach a p below {for_it.minimum_p:.4g}"
    elif for_it.p <= ALPHA:
        reason = f"{len(cells) - favouring} of {len(cells)} cells do not favour it in the mean"
    else:
        reason = "neither direction reaches 5 % over all cells together"
    supported = favouring == len(cells) and for_it.p <= ALPHA
    return decide(supported, against.p <= ALPHA or contradicted > 0, statistic, reason, numbers)


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
    statistic = f"means {shown}; Page's trend test p {for_it:.4g} over {len(table)} seeds"
    numbers |= {"p": for_it, "n": len(table)}
    out_of_order = [f"{names[i]} to {names[i + 1]}" for i in np.flatnonzero(steps <= 0)]
    reason = "the trend does not reach 5 %"
    if out_of_order:
        reason = f"the means are not in order ({', '.join(out_of_order)})"
    supported = not out_of_order and for_it <= ALPHA
    return decide(supported, against <= ALPHA, statistic, reason, numbers)
