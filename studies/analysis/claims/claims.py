"""A paper's claims, each tested on this study's finished runs and called supported, not supported,
mixed, undecided at this power, without skill, without power, or not tested.

Nothing here is typed in: a claim in a study's YAML has words and a test, and the outcome follows
from the runs. docs/claims.md says how, docs/study-reference.md lists its options, and
`studies.analysis.claims.claim_tests` and `family_tests` have the rules of all tests.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, cast

import numpy as np

from studies.analysis.claims.claim_tests import (
    judge_difference,
    judge_equality,
    judge_level,
    judge_trend,
)
from studies.analysis.claims.claim_values import Measured, Values
from studies.analysis.claims.claim_worth import (
    Worth,
    equality_margin,
    only_with_power,
    only_with_skill,
    worth_of,
)
from studies.analysis.claims.family_tests import Cell, judge_cells, judge_kinds
from studies.analysis.claims.verdict import Pairs, Verdict, columns, not_tested
from studies.analysis.uncertainty.spread import Spread
from studies.report.section import ABSENT, ClaimSpec


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
    pairs, spread, absent = _pairs(claim, measured, claim.level)
    if absent:
        return not_tested(absent)
    verdict = judge_difference(pairs, cast(Any, claim.test), spread)
    return _counted(verdict, claim, measured)


def _equality(claim: ClaimSpec, measured: Measured) -> Verdict:
    pairs, spread, absent = _pairs(claim, measured, claim.level)
    if absent:
        return not_tested(absent)
    worth = _worth(claim, measured)
    if isinstance(worth, str) and claim.margin is None:
        return not_tested(worth)
    reference = float(columns(pairs)[1].mean())
    margin, meaning = equality_margin(claim.metric, reference, worth or "", claim.margin)
    verdict = judge_equality(pairs, margin, meaning, spread)
    control, name = None, ""
    if claim.control is not ABSENT:
        name = measured.label(claim.control)
        others, of_others, absent = _pairs(claim, measured, claim.control)
        control = (
            not_tested(absent) if absent else judge_equality(others, margin, meaning, of_others)
        )
    return _counted(only_with_power(verdict, control, name), claim, measured)


def _level(claim: ClaimSpec, measured: Measured) -> Verdict:
    values, absent = measured.values(claim, claim.level, claim.column_levels[0])
    if absent:
        return not_tested(absent)
    spread = measured.spread(claim, values, claim.level, claim.column_levels[0])
    return judge_level(values, claim.bound, cast(Any, claim.test), spread)


def _family(claim: ClaimSpec, measured: Measured) -> Verdict:
    """Cells are of one kind where they differ in nothing but their level; each level is a kind of
    its own where there is one column and one metric.
    """
    metrics = claim.metric if isinstance(claim.metric, list) else [claim.metric]
    kinds: dict[str, list[tuple]] = {}
    for cell in product(claim.levels, claim.column_levels, metrics):
        kinds.setdefault(_kind(claim, measured, metrics, *cell), []).append(cell)
    verdicts, absent, cells = {}, [], sum(map(len, kinds.values()))
    for name, of_kind in kinds.items():
        result = [_pairs(claim, measured, *cell) for cell in of_kind]
        absent += [reason for _, _, reason in result if reason]
        if not any(reason for _, _, reason in result):
            compared: list[Cell] = [(pairs, spread) for pairs, spread, _ in result]
            verdict = judge_cells(compared, cast(Any, claim.direction))
            verdicts[name] = _counted(verdict, claim, measured, *of_kind[0][1:])
    if absent:
        return not_tested(f"{len(absent)} of {cells} cells have no values: {absent[0]}")
    return judge_kinds(verdicts)


def _kind(
    claim: ClaimSpec, measured: Measured, metrics: list[str], level: Any, column: Any, metric: str
) -> str:
    if len(claim.column_levels) == len(metrics) == 1:
        return measured.label(level)
    names = [measured.label(column)] if len(claim.column_levels) > 1 else []
    return ", ".join(names + [metric] * (len(metrics) > 1))


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
    verdict = judge_trend(
        table, [measured.label(level) for level in claim.levels], cast(Any, claim.direction)
    )
    worths = [worth_of(measured.records(claim, level), claim.metric) for level in claim.levels]
    unknown = next((worth for worth in worths if isinstance(worth, str)), None)
    known = [worth for worth in worths if isinstance(worth, Worth)]
    return only_with_skill(verdict, unknown or max(known, key=lambda worth: worth.skill))


_TESTS = {
    **dict.fromkeys(("less", "greater"), _difference),
    **dict.fromkeys(("above", "below"), _level),
    **{"equal": _equality, "family": _family, "monotone": _trend},
}


def _pairs(
    claim: ClaimSpec, measured: Measured, level: Any, column: Any = ABSENT, metric: str = ""
) -> tuple[Pairs, Spread | str, str]:
    """A level's values beside those of the reference, or beside the bound, and what they owe to
    items; or why there are none.
    """
    values, absent = measured.values(claim, level, column, metric)
    if absent:
        return {}, "", absent
    if claim.reference is ABSENT:
        spread = measured.spread(claim, values, level, column, metric)
        return {unit: (value, claim.bound) for unit, value in values.items()}, spread, ""
    others, absent = measured.values(claim, claim.reference, column, metric)
    if absent:
        return {}, "", absent
    pairs = {unit: (value, others[unit]) for unit, value in values.items() if unit in others}
    if not pairs:
        both = f"{measured.label(level)} and {measured.label(claim.reference)}"
        return {}, "", f"no seed has a value of both {both}"
    return pairs, measured.spread(claim, pairs, level, column, metric, claim.reference), ""


def _worth(
    claim: ClaimSpec, measured: Measured, column: Any = ABSENT, metric: str = ""
) -> Worth | str | None:
    """That of the reference; None where a claim has none, or is not about runs."""
    if claim.reference is ABSENT or claim.figure or claim.comparison:
        return None
    return worth_of(measured.records(claim, claim.reference, column), metric or claim.metric)


def _counted(
    verdict: Verdict, claim: ClaimSpec, measured: Measured, column: Any = ABSENT, metric: str = ""
) -> Verdict:
    worth = _worth(claim, measured, column, metric)
    return verdict if worth is None else only_with_skill(verdict, worth)
