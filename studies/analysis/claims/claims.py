"""A paper's claims, each tested on this study's finished runs and called supported, not supported,
undecided at this power, or not tested.

Nothing here is typed in: a claim in a study's YAML has words and a test, and the outcome follows
from the runs. docs/study-reference.md lists its options, and `studies.analysis.claims.claim_tests`
has the rules of all tests.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, cast

import numpy as np

from studies.analysis.claims.claim_tests import (
    judge_difference,
    judge_equality,
    judge_family,
    judge_level,
    judge_trend,
)
from studies.analysis.claims.claim_values import Measured, Values
from studies.analysis.claims.verdict import Pairs, Verdict, not_tested
from studies.report.section import ABSENT, ClaimSpec
from studies.tables.listing import Listing

NUMBERS = (
    *("estimate", "low", "high", "p", "minimum_p", "n", "margin", "bound", "lowest", "highest"),
    *("cells", "cells_in_favour", "cells_unanimous", "cells_holm", "least_p_holm"),
)
RULES = (
    "Every claim is tested on the runs of this study, at 5 %: undecided means that these seeds "
    "show neither the claim nor its opposite, and not "
    "that it is false; no correction is made for the number of claims. A claim of several cells "
    "is supported where the means of all favour it and the test over all "
    "of them together finds it; the grounds say in how many cells each by itself would."
)


@dataclass(frozen=True)
class Judged:
    """A claim and what came out."""

    claim: ClaimSpec
    verdict: Verdict


def judge(claim: ClaimSpec, measured: Measured) -> Judged:
    """Test a claim on what was measured."""
    verdict = _TESTS[claim.test](claim, measured)
    if claim.comparison and not claim.between and verdict.statistic:
        verdict = replace(verdict, statistic=f"seeds' jackknife values: {verdict.statistic}")
    return Judged(claim, verdict)


def _difference(claim: ClaimSpec, measured: Measured) -> Verdict:
    pairs, absent = _pairs(claim, measured, claim.level)
    return not_tested(absent) if absent else judge_difference(pairs, cast(Any, claim.test))


def _equality(claim: ClaimSpec, measured: Measured) -> Verdict:
    pairs, absent = _pairs(claim, measured, claim.level)
    return not_tested(absent) if absent else judge_equality(pairs, claim.margin)


def _level(claim: ClaimSpec, measured: Measured) -> Verdict:
    values, absent = measured.values(claim, claim.level, claim.column_levels[0])
    return not_tested(absent) if absent else judge_level(values, claim.bound, cast(Any, claim.test))


def _family(claim: ClaimSpec, measured: Measured) -> Verdict:
    metrics = claim.metric if isinstance(claim.metric, list) else [claim.metric]
    result = [
        _pairs(claim, measured, *cell)
        for cell in product(claim.levels, claim.column_levels, metrics)
    ]
    absent = [reason for _, reason in result if reason]
    if absent:
        return not_tested(f"{len(absent)} of {len(result)} cells have no values: {absent[0]}")
    return judge_family([pairs for pairs, _ in result], cast(Any, claim.direction))


def _trend(claim: ClaimSpec, measured: Measured) -> Verdict:
    result: list[Values] = []
    for level in claim.levels:
        values, absent = measured.values(claim, level)
        if absent:
            return not_tested(absent)
        result.append(values)
    seeds = [unit for unit in result[0] if all(unit in values for values in result)]
    if not seeds:
        return not_tested("no seed has a value at every level")
    table = np.array([[values[unit] for values in result] for unit in seeds])
    return judge_trend(
        table, [measured.label(level) for level in claim.levels], cast(Any, claim.direction)
    )


_TESTS = {
    **dict.fromkeys(("less", "greater"), _difference),
    **dict.fromkeys(("above", "below"), _level),
    **{"equal": _equality, "family": _family, "monotone": _trend},
}


def _pairs(
    claim: ClaimSpec, measured: Measured, level: Any, column: Any = ABSENT, metric: str = ""
) -> tuple[Pairs, str]:
    """A level's values beside those of the reference, or beside the bound; or why there are
    none.
    """
    values, absent = measured.values(claim, level, column, metric)
    if absent:
        return {}, absent
    if claim.reference is ABSENT:
        return {unit: (value, claim.bound) for unit, value in values.items()}, ""
    others, absent = measured.values(claim, claim.reference, column, metric)
    if absent:
        return {}, absent
    pairs = {unit: (value, others[unit]) for unit, value in values.items() if unit in others}
    return (
        pairs,
        ""
        if pairs
        else f"no seed has a value of both {measured.label(level)} and "
        f"{measured.label(claim.reference)}",
    )


def summary_line(judged: list[Judged]) -> str:
    """
    >>> summary_line([])
    'Of 0 claims: 0 supported, 0 not supported, 0 undecided at this power, 0 not tested.'
    """
    counts = Counter(result.verdict.outcome for result in judged)
    messages = {
        "supported": "supported",
        "not supported": "not supported",
        "undecided": "undecided at this power",
        "not tested": "not tested",
    }
    listed = ", ".join(f"{counts[outcome]} {words}" for outcome, words in messages.items())
    return f"Of {len(judged)} claim{'s' * (len(judged) != 1)}: {listed}."


OUTCOMES = {
    "supported": "Shown by these runs",
    "not supported": "Contradicted by these runs",
    "undecided": "Undecided at this power",
    "not tested": "Not testable on these runs",
}


def outcomes_in_words(judged: list[Judged]) -> list[str]:
    """Which claims came out how, a sentence for each outcome, by their ids; nothing in it is typed
    in.
    """
    result = {
        outcome: [j.claim.id for j in judged if j.verdict.outcome == outcome]
        for outcome in OUTCOMES
    }
    return [f"{OUTCOMES[outcome]}: {', '.join(ids)}." for outcome, ids in result.items() if ids]


def claims_listing(judged: list[Judged], notices: list[str]) -> Listing:
    """One row per claim: what was claimed, where, what came out and on what grounds."""
    rows = []
    for result in judged:
        claim, verdict = result.claim, result.verdict
        grounds = verdict.statistic + (
            f"{'; ' * bool(verdict.statistic)}{verdict.reason}" if verdict.reason else ""
        )
        rows.append(
            {
                "id": claim.id,
                "claim": claim.claim,
                "paper": claim.paper,
                "outcome": verdict.outcome,
                "grounds": grounds
                + (f"\npublished: {claim.published_values}" if claim.published else ""),
                "test": claim.test,
                "statistic": verdict.statistic,
                "reason": verdict.reason,
                "published": claim.published_values,
                **{name: verdict.numbers.get(name, math.nan) for name in NUMBERS},
            }
        )
    shown = {
        "id": "id",
        "claim": "claim",
        "paper": "in the paper",
        "outcome": "outcome",
        "grounds": "grounds",
    }
    messages = [summary_line(judged), *outcomes_in_words(judged), *notices, RULES]
    return Listing("claims", "Claims", messages, shown, rows, hidden=("grounds",))
