"""Every registered score on tables at the edge: a number, or a reason why there is none."""

import math

import numpy as np
import pytest
import torch

import metrics
from callbacks.records.results_file import undefined_in_words
from metrics import registered
from metrics.worth import score_bounds

RNG = np.random.default_rng(3)
EVERY = registered(ordinal=True)
SINGLE = np.eye(4)[RNG.integers(3, size=12)]  # a vote each, and a class that nobody chose
SPLIT = RNG.multinomial(6, [0.4, 0.3, 0.3, 0.0], 12) / 6
SOME = RNG.dirichlet(np.ones(4), 12)
TABLES = {
    "single votes": (SOME, SINGLE),
    "constant predictions": (np.full((12, 4), 0.25), SPLIT),
    "a class that nobody chose": (SOME, SPLIT),
    "sure predictions": (SINGLE, SPLIT),
    "all agree with all": (SINGLE[:1].repeat(12, 0), SINGLE[:1].repeat(12, 0)),
    "one item": (SOME[:1], SPLIT[:1]),
    "two items": (SOME[:2], SPLIT[:2]),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_score_is_a_number_or_says_why_it_is_not(name: str):
    values = metrics.every_score(*TABLES[name], ordinal=True)
    undefined = {name: value for name, value in values.items() if not math.isfinite(value)}
    assert all(EVERY[name].undefined for name in undefined)
    assert undefined_in_words(undefined) == [
        f"{name} is not defined, because {EVERY[name].undefined}." for name in undefined
    ]


def test_what_is_not_defined_where_all_items_are_unanimous():
    values = metrics.every_score(*TABLES["single votes"], ordinal=True)
    assert {name for name, value in values.items() if math.isnan(value)} == {
        "disagreement_auroc",
        "entropy_pearson",
        "entropy_spearman",
    }


@pytest.mark.parametrize("name", EVERY)
def test_the_order_of_items_does_not_matter_where_predictions_tie(name: str):
    probs, targets = (
        torch.from_numpy(RNG.multinomial(votes, RNG.dirichlet(np.ones(4), 60)) / votes)
        for votes in (3, 7)
    )
    order = torch.from_numpy(RNG.permutation(60))
    score = EVERY[name]
    expected = score.value(probs, targets).item()
    again = score.value(probs[order], targets[order]).item()
    assert math.isfinite(expected)
    assert again == pytest.approx(expected, abs=1e-12)


# against the majority people themselves are not calibrated; a sharper model has more resolution
ANOTHER_BEST = {"ece", "smooth_ece", "hard_nll", "brier_resolution", "brier_uncertainty"}


@pytest.mark.parametrize("name", [name for name in EVERY if name not in ANOTHER_BEST])
def test_repeating_people_exactly_is_best(name: str):
    score, targets = EVERY[name], torch.from_numpy(RNG.dirichlet(np.ones(4), 200))
    targets[:20] = torch.eye(4)[0]
    model = 0.5 * targets + 0.5 * torch.from_numpy(RNG.dirichlet(np.ones(4), 200))
    people, other = (score.value(probs, targets).item() for probs in (targets, model))
    assert people >= other if score.better == "higher" else people <= other


def test_floors_and_ceilings_of_all_scores_are_on_their_right_sides():
    truth = RNG.dirichlet(np.full(5, 0.4), 3000)
    counts, train = RNG.multinomial(20, truth), RNG.multinomial(20, truth)
    bounds = score_bounds(train, counts, list(EVERY.values()))
    for name, score in EVERY.items():
        bound = bounds[name]
        assert math.isfinite(bound.ceiling), name
        if score.floor is None:
            assert bound.floor is None
            continue
        assert bound.floor is not None
        assert bound.skill(bound.floor) == 0
        room = bound.floor - bound.ceiling
        assert room > 0.02 if score.better == "lower" else room < -0.02, (name, bound)
    assert bounds["disagreement_auroc"].floor == 0.5
    assert bounds["rating_alpha"].floor == 0
    assert bounds["ent_ce"].floor is None
    largest = np.bincount(train.argmax(1)).argmax()
    risk = np.mean(counts.argmax(1) != largest)
    assert bounds["aurc"].floor == pytest.approx(risk, abs=1e-12)
    assert bounds["macro_f1"].floor == pytest.approx(2 * (1 - risk) / (2 - risk) / 5, abs=1e-12)
