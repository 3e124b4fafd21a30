"""How a claim about several cells is judged: kind by kind, each by one test of all its cells."""

from collections.abc import Mapping, Sequence

import numpy as np

from studies.analysis.claims.claim_tests import ALPHA, OPPOSITE, Side, because, in_words
from studies.analysis.claims.verdict import Outcome, Pairs, Verdict, columns
from studies.analysis.statistics import direction_agreement, holm, paired_wilcoxon
from studies.analysis.uncertainty.estimate import estimate
from studies.analysis.uncertainty.spread import Spread, sum_of

Cell = tuple[Pairs, Spread | str]


def judge_cells(cells: Sequence[Cell], side: Side) -> Verdict:
    """Cells of one kind (several deliveries of as many votes, say), by one test for all of them.

    Holm's correction over many cells cannot reject anything with five seeds, so it cannot be the
    rule. Instead each seed gets one number: its mean over cells of the difference in units of that
    cell's root mean square (which does not depend on signs, so that the test stays valid), and
    these numbers are tested as in `less` and `greater`. Supported: every cell favours the claim in
    the mean, and that test reaches 5 %. Contradicted: the opposite test does. Mixed: neither, but
    some cell by itself reaches 5 % in the opposite direction after Holm. How many cells favour the
    claim, in how many all seeds agree, and in how many Holm's p reaches 5 % is always shown.
    """
    of_cells = [pairs for pairs, _ in cells]
    seeds = [seed for seed in of_cells[0] if all(seed in pairs for pairs in of_cells)]
    if min(map(len, of_cells)) < 2 or len(seeds) < 2:
        return Verdict(
            "undecided",
            reason="fewer than two seeds have a value in every cell",
            numbers={"n": len(seeds), "cells": len(cells)},
        )
    compared = [columns(pairs) for pairs in of_cells]
    sign = -1 if side == "less" else 1
    favouring = sum(sign * (a - b).mean() > 0 for a, b in compared)
    wanted = "lower" if side == "less" else "higher"
    agreements = [direction_agreement(a, b, wanted) for a, b in compared]
    unanimous = sum(agree == of for agree, of in agreements)
    by_side = {s: [_p(*cell, s) for cell in cells] for s in OPPOSITE.values()}
    adjusted = {s: holm(p_values) for s, p_values in by_side.items()}
    rejected, contradicted = (int(np.sum(adjusted[s] <= ALPHA)) for s in (side, OPPOSITE[side]))
    together, spread = _together(cells, seeds)
    found = estimate(together, spread)
    for_it, against = (
        paired_wilcoxon(together, np.zeros(len(seeds)), s) for s in (side, OPPOSITE[side])
    )
    p, p_against, tested = for_it.p, against.p, f"one-sided Wilcoxon p {in_words(for_it)}"
    if found.items:
        p, p_against = found.p(side), found.p(OPPOSITE[side])
        tested = f"one-sided p {p:.4g}"
    of_all = "" if len(cells) == 1 else "all cells together: "
    statistic = (
        f"{favouring} of {len(cells)} cells favour it, in {unanimous} all seeds agree, Holm's p "
        f"reaches 5 % in {rejected}; {of_all}{tested} {found.over}{because(found)} "
        f"({len(seeds)} seeds)"
    )
    numbers = {"p": p, "n": len(seeds), "cells": len(cells), "cells_in_favour": favouring}
    numbers |= {"cells_unanimous": unanimous, "cells_holm": rejected}
    numbers |= {"least_p_holm": float(adjusted[side].min())}
    numbers |= {"minimum_p": for_it.minimum_p} if not found.items else {}
    if p_against <= ALPHA:
        return Verdict("not supported", statistic, "", numbers)
    if favouring == len(cells) and p <= ALPHA:
        return Verdict("supported", statistic, "", numbers)
    if contradicted:
        reason = f"{contradicted} of {len(cells)} cells by themselves contradict it (Holm's p)"
        return Verdict("mixed", statistic, reason, numbers)
    if for_it.minimum_p > ALPHA and not found.items:
        reason = f"{for_it.n} seeds cannot reach a p below {for_it.minimum_p:.4g}"
    elif p <= ALPHA:
        reason = f"{len(cells) - favouring} of {len(cells)} cells do not favour it in the mean"
    else:
        reason = "neither direction reaches 5 % over all cells together"
    return Verdict("undecided", statistic, reason, numbers)


def judge_kinds(kinds: Mapping[str, Verdict]) -> Verdict:
    """A claim of several kinds of cells is what all of them are. Where they differ it is mixed, and
    which kind came out how is said: one of eight that goes the other way is one of eight.

    >>> kinds = {"5 votes": Verdict("supported", "p 0.01"), "50 votes": Verdict("no skill", "p 1")}
    >>> judge_kinds(kinds).outcome, judge_kinds(kinds).reason
    ('mixed', 'supported: 5 votes; no skill: 50 votes')
    """
    first = next(iter(kinds.values()))
    not_tested = first.outcome == "not tested"
    if len(kinds) == 1 or (not_tested and all(verdict == first for verdict in kinds.values())):
        return first
    outcomes: dict[Outcome, list[str]] = {}
    for name, verdict in kinds.items():
        outcomes.setdefault(verdict.outcome, []).append(name)
    by_kind = "; ".join(f"{outcome}: {', '.join(names)}" for outcome, names in outcomes.items())
    grounds = [
        f"{name}: " + "; ".join(filter(None, (verdict.statistic, verdict.reason)))
        for name, verdict in kinds.items()
    ]
    every = [verdict.numbers for verdict in kinds.values()]
    numbers = {
        name: float(sum(numbers.get(name, 0) for numbers in every))
        for name in ("cells", "cells_in_favour", "cells_unanimous", "cells_holm")
    }
    numbers |= {"n": min((numbers["n"] for numbers in every if "n" in numbers), default=0)}
    numbers |= {"kinds": len(kinds), "kinds_supported": len(outcomes.get("supported", []))}
    outcome = next(iter(outcomes)) if len(outcomes) == 1 else "mixed"
    return Verdict(outcome, "\n".join(grounds), by_kind if len(outcomes) > 1 else "", numbers)


def _p(pairs: Pairs, spread: Spread | str, side: Side) -> float:
    a, b = columns(pairs)
    found = estimate(a - b, spread)
    return found.p(side) if found.items else paired_wilcoxon(a, b, side).p


def _together(cells: Sequence[Cell], seeds: list[tuple]) -> tuple[np.ndarray, Spread | str]:
    """One number per seed, and its spread."""
    differences = np.array(
        [[pairs[seed][0] - pairs[seed][1] for seed in seeds] for pairs, _ in cells]
    )
    scale = np.sqrt(np.square(differences).mean(1))
    factors = np.divide(1, scale * len(cells), out=np.zeros_like(scale), where=scale > 0)
    together = factors @ differences
    absent = next((spread for _, spread in cells if isinstance(spread, str)), None)
    if absent is not None:
        return together, absent
    if any(list(pairs) != seeds for pairs, _ in cells):
        return together, "some cells have other seeds than others"
    scaled = [
        spread.scaled(float(factor))
        for (_, spread), factor in zip(cells, factors, strict=True)
        if isinstance(spread, Spread)
    ]
    return together, sum_of(scaled)
