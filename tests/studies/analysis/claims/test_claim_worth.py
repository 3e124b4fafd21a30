"""Claims that can fail: without skill in the reference, or a control that a test tells apart, they
say nothing. The runs are made up.
"""

from typing import Any

import pytest

from studies.analysis.claims.claim_values import Measured
from studies.analysis.claims.claims import judge
from studies.analysis.claims.verdict import Verdict
from tests.studies.analysis.claims.test_claims import (
    FAMILY,
    LESS,
    collection_of,
    far_control,
    soft_nll,
    spec_of,
    without,
)

EQUAL = {**LESS, "test": "equal", "control": "StochasticLabelSampling"}


def worth_of(skill: float | None, floor: float | None = 5.0, ceiling: float | None = 0.0):
    """The block `worth` of a run, the same for all of its scores."""
    entry = {"floor": floor, "ceiling": ceiling, "low": ceiling, "high": ceiling, "skill": skill}
    return lambda metrics: dict.fromkeys({"soft_nll", *metrics}, entry)


def verdict(claim: dict[str, Any], worth: Any, score: Any = soft_nll) -> Verdict:
    collection = collection_of(score, worth)
    measured = Measured(collection, ["seed_everything"], {}, {})
    return judge(spec_of(claim, collection), measured).verdict


@pytest.mark.parametrize(("skill", "outcome"), [(0.049, "no skill"), (0.05, "supported")])
def test_a_comparison_counts_where_its_reference_has_five_percent_of_skill(skill, outcome):
    for claim in (LESS, FAMILY):
        assert verdict(claim, worth_of(skill)).outcome == outcome
    found = verdict(LESS, worth_of(skill))
    assert found.numbers["skill"] == pytest.approx(skill)
    assert found.numbers["p"] == 1 / 32  # it is still told
    if outcome == "no skill":
        assert found.reason == "the reference's skill is 4.9 % (Soft NLL), below 5 %"


def test_what_has_no_skill_of_its_own_takes_that_of_soft_nll():
    def block(metrics: dict[str, float]) -> dict[str, Any]:
        nothing = {"floor": None, "ceiling": 0.01, "low": 0.0, "high": 0.02, "skill": None}
        return {"ece": nothing, "soft_nll": worth_of(0.01)({})["soft_nll"]}

    def scores(delivery: str, votes: int, seed: int) -> dict[str, float]:
        value = soft_nll(delivery, votes, seed)["soft_nll"]
        return {"ece": value, "hessian_max": value}

    for metric in ("ece", "hessian_max"):
        found = verdict({**LESS, "metric": metric}, block, scores)
        assert (found.outcome, found.numbers["skill"]) == ("no skill", 0.01)


@pytest.mark.parametrize("test", [LESS, FAMILY, EQUAL, {**EQUAL, "margin": 0.01}])
def test_runs_of_before_floors_and_ceilings_are_not_judged(test):
    found = verdict(test, lambda metrics: None)
    assert found.outcome == "not tested"
    assert "study evaluate" in found.reason


@pytest.mark.parametrize(
    ("floor", "outcome"), [(2.0, "supported"), (0.91, "not tested"), (0.8, "no skill")]
)
def test_without_a_ceiling_skill_is_at_least_that_below_a_perfect_score(floor, outcome):
    """The reference's KL is 0.9: of 2.0 down to 0 that is 55 %, of 0.91 it is 1 % or more."""

    def kl(delivery: str, votes: int, seed: int) -> dict[str, float]:
        return {"kl": soft_nll(delivery, votes, seed)["soft_nll"]}

    found = verdict({**LESS, "metric": "kl"}, worth_of(None, floor=floor, ceiling=None), kl)
    assert found.outcome == outcome
    if outcome == "not tested":
        assert "not known: KL to annotators has no ceiling" in found.reason


def test_a_level_against_a_number_needs_no_reference():
    claim = {**without(LESS, "reference"), "test": "above", "bound": 0.1}
    assert verdict(claim, worth_of(0.0)).outcome == "supported"


def test_a_trend_counts_where_its_best_level_has_skill():
    claim = {
        **without(LESS, "level", "reference"), "test": "monotone", "rows": "data.votes_per_item",
        "where": {"data.delivery": "Multipass"}, "levels": [5, 10, 25], "direction": "falling",
    }  # fmt: skip
    assert verdict(claim, worth_of(0.01)).outcome == "no skill"
    assert verdict(claim, worth_of(0.5)).outcome == "supported"


@pytest.mark.parametrize(
    ("metric", "floor", "given", "margin", "words"),
    [
        # the reference is 0.9 on average: 0.5 + 0.2 + 0.2
        ("kl", 1.4, None, 0.05, "10 % of what the reference is better by"),
        ("soft_nll", 1.4, None, 0.018, "2 % of the reference's mean"),
        ("soft_nll", 1.0, None, 0.01, "10 % of what the reference is better by"),
        ("kl", 1.4, 0.02, 0.02, "margin ± 0.02,"),
        ("kl", 1.4, 0.2, 0.05, "10 % of what the reference is better by"),  # never wider
        ("kl", 1.4, "3 %", 0.027, "3 % of the reference's mean"),
    ],
)
def test_the_margin_follows_from_floor_and_reference(metric, floor, given, margin, words):
    def score(delivery: str, votes: int, seed: int) -> dict[str, float]:
        return {metric: far_control(delivery, votes, seed)["soft_nll"]}

    claim = {**EQUAL, "metric": metric} | ({} if given is None else {"margin": given})
    found = verdict(claim, worth_of(0.5, floor=floor), score)
    assert found.numbers["margin"] == pytest.approx(margin)
    assert words in found.statistic


def test_equality_is_shown_only_where_a_control_is_told_apart():
    wide = worth_of(0.5, floor=9.0)  # the margin is 2 % of 0.9
    found = verdict(EQUAL, wide, far_control)
    assert found.outcome == "supported"
    assert "control StochasticLabelSampling: mean difference 0.988" in found.statistic
    near = verdict(EQUAL, wide)
    assert near.outcome == "no power"
    assert near.reason == "the control StochasticLabelSampling is not outside of the margin either"
    nobody = verdict(without(EQUAL, "control"), wide, far_control)
    assert (nobody.outcome, nobody.reason[:19]) == ("no power", "no control is named")
    unfinished = verdict(
        EQUAL, wide, lambda d, v, s: {} if d == "StochasticLabelSampling" else soft_nll(d, v, s)
    )
    assert unfinished.outcome == "no power"
    assert "no run of StochasticLabelSampling is finished" in unfinished.statistic


def test_a_difference_that_was_found_needs_no_control():
    claim = {**without(EQUAL, "control"), "margin": 0.001}
    assert verdict(claim, worth_of(0.5)).outcome == "not supported"


def test_a_claim_of_several_kinds_is_reported_by_kind():
    def worse_at_25(delivery: str, votes: int, seed: int) -> dict[str, float]:
        value = soft_nll("SoftLabels", votes, seed)["soft_nll"]
        gain = 0.01 * (delivery != "SoftLabels") * (1 + seed / 10)
        return {"soft_nll": value + (gain if votes == 25 else -gain)}

    found = verdict(FAMILY, worth_of(0.5), worse_at_25)
    assert (found.outcome, found.reason) == ("mixed", "supported: 5, 10; not supported: 25")
    assert (found.numbers["kinds"], found.numbers["kinds_supported"]) == (3, 2)
    assert found.statistic.count("\n") == 2
    one = {**without(FAMILY, "columns"), "where": {"data.votes_per_item": 25}}
    assert verdict(one, worth_of(0.5), worse_at_25).outcome == "not supported"


def test_a_kind_without_skill_does_not_count_for_the_others():
    def block(metrics: dict[str, float]) -> dict[str, Any]:
        return worth_of(0.01 if metrics["votes"] == 25 else 0.5)(metrics)

    found = verdict(FAMILY, block, lambda d, v, s: {**soft_nll(d, v, s), "votes": v})
    assert (found.outcome, found.reason) == ("mixed", "supported: 5, 10; no skill: 25")
