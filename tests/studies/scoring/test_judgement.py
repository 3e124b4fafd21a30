"""Scores between floor and ceiling, and two tables on the same items."""

import math

import numpy as np
import pytest

from datamodules.votes.table import VoteTable
from metrics import every_score
from metrics.registry import registered
from metrics.worth import score_bounds
from studies.scoring import resampling
from studies.scoring.judgement import Judgement
from studies.scoring.judgement import judge as judge_parts
from tests.studies.scoring.files import some_probs

SCORES = [registered()[name] for name in ("kl", "accuracy", "entropy_spearman", "ece")]
TRUTH = some_probs(300, 3, seed=4) ** 2
TRUTH /= TRUTH.sum(1, keepdims=True)
VOTES = VoteTable(np.random.default_rng(5).multinomial(20, TRUTH))
TRAINING, TESTED = VOTES.take(np.arange(200)), VOTES.take(np.arange(200, 300))
GOOD = 0.8 * TRUTH[200:] + 0.2 / 3
POOR = 0.2 * TRUTH[200:] + 0.8 / 3


def judge(tables, votes, training, scores, seed) -> Judgement:
    every = {"all": np.ones(len(votes), bool)}
    return judge_parts(tables, votes, training, every, scores, seed)["all"]


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resampling, "OTHERS", 20)


@pytest.fixture(scope="module")
def judged() -> Judgement:
    return judge({"good": GOOD, "poor": POOR}, TESTED, TRAINING, SCORES, seed=0)


def test_scores_and_skill_are_those_of_metrics(judged: Judgement):
    assert TRAINING.counts is not None
    assert TESTED.counts is not None
    bounds = score_bounds(TRAINING.counts, TESTED.counts, SCORES, seed=0)
    values = every_score(GOOD, TESTED.probs)
    for score in SCORES:
        found = judged.found["good"][score.name]
        assert found.value == values[score.name]
        assert judged.bounds[score.name] == bounds[score.name]
        assert judged.floors[score.name] == bounds[score.name].floor
        assert found.low <= found.value <= found.high
        skill = bounds[score.name].skill(found.value)
        assert math.isnan(found.skill) if skill is None else found.skill == skill
        if skill is not None:
            assert found.skill_low <= skill <= found.skill_high
    kl = judged.found["good"]["kl"]
    assert 0.5 < kl.skill < 1.05
    assert math.isnan(judged.found["good"]["ece"].skill), "calibration errors have a ceiling only"


def test_skill_of_the_floor_itself_is_0_and_sure():
    """It is the same constant in every resample, so nothing about it is random."""
    constant = np.tile(TRAINING.probs.mean(0), (100, 1))
    found = judge({"constant": constant}, TESTED, TRAINING, SCORES, seed=0).found["constant"]
    assert (found["kl"].skill, found["kl"].skill_low, found["kl"].skill_high) == pytest.approx(
        (0, 0, 0), abs=1e-12
    )
    assert found["kl"].high - found["kl"].low > 0.01
    assert math.isnan(found["entropy_spearman"].value)
    assert math.isnan(found["entropy_spearman"].skill)


def test_the_better_of_two_is_told(judged: Judgement):
    assert len(judged.differences) == len(SCORES)
    (kl,) = (each for each in judged.differences if each.score.name == "kl")
    assert (kl.first, kl.second, kl.better) == ("good", "poor", "good")
    assert kl.value == judged.found["good"]["kl"].value - judged.found["poor"]["kl"].value
    assert kl.low < kl.value < kl.high < 0
    assert kl.p == kl.holm_p < 1e-6
    same = judge({"a": GOOD, "b": GOOD}, TESTED, TRAINING, SCORES, seed=0)
    assert {(each.value, each.p, each.better) for each in same.differences} == {(0, 1, "")}


def test_pairs_of_three_are_adjusted_together():
    three = {"good": GOOD, "poor": POOR, "other": 0.79 * TRUTH[200:] + 0.07}
    differences = judge(three, TESTED, TRAINING, SCORES[:1], seed=0).differences
    assert [(each.first, each.second) for each in differences] == [
        ("good", "poor"),
        ("good", "other"),
        ("poor", "other"),
    ]
    assert all(each.p <= each.holm_p <= min(1, 3 * each.p) for each in differences)


def test_shares_without_counts_have_floors_and_no_ceilings():
    shares = VoteTable.from_probs(VOTES.probs)
    found = judge(
        {"good": GOOD}, shares.take(np.arange(200, 300)), shares.take(np.arange(200)), SCORES, 0
    )
    assert not found.bounds
    assert found.floors["kl"] == pytest.approx(score_floor())
    assert math.isnan(found.found["good"]["kl"].skill)
    assert found.found["good"]["kl"].low < found.found["good"]["kl"].high


def score_floor() -> float:
    constant = np.tile(TRAINING.probs.mean(0), (100, 1))
    return every_score(constant, TESTED.probs)["kl"]


@pytest.mark.parametrize("items", [1, 2, 3])
def test_few_items_have_a_result_all_the_same(items: int):
    some = judge({"good": GOOD[:items]}, TESTED.take(np.arange(items)), TRAINING, SCORES, seed=0)
    kl = some.found["good"]["kl"]
    assert kl.low - 1e-12 <= kl.value <= kl.high + 1e-12
    assert bool(some.bounds) == (items >= 3)


def test_parts_are_judged_apart():
    unanimous = TESTED.unanimous
    masks = {"all": np.ones(100, bool), "nohlv": unanimous, "hlv": ~unanimous}
    parts = judge_parts({"good": GOOD}, TESTED, TRAINING, masks, SCORES, seed=0)
    for name, mask in masks.items():
        assert parts[name].items == mask.sum() > 3
        assert parts[name].found["good"]["kl"].value == pytest.approx(
            every_score(GOOD[mask], TESTED.probs[mask])["kl"]
        )
    assert math.isnan(parts["nohlv"].found["good"]["entropy_spearman"].value)
    assert math.isnan(parts["nohlv"].found["good"]["entropy_spearman"].low)
