"""Floors, ceilings and errors with other numbers of votes, against what such votes give."""

import numpy as np
import pytest
import torch

from metrics import every_score, per_item
from metrics.worth import spendings
from tests.metrics.worth.made_truths import ITEMS, dirichlet


def test_what_other_numbers_of_votes_would_give():
    rng = np.random.default_rng(3)
    truth = dirichlet(rng, 4, sharp=False)
    ways = {way.votes: way for way in spendings(rng.multinomial(40, truth), votes=(5, 10, 100))}
    assert {votes: way.items for votes, way in ways.items()} == {
        votes: ITEMS * 40 // votes for votes in (5, 10, 100)
    }
    for votes, way in ways.items():
        table = rng.multinomial(votes, truth) / votes
        constant = np.tile(table.mean(0), (ITEMS, 1))
        for name in ("soft_nll", "kl", "soft_brier", "accuracy", "entropy_pearson"):
            expected = every_score(truth, table)[name]
            bound = way.bounds[name]
            room = abs(bound.floor - expected)
            assert abs(bound.ceiling - expected) < 0.05 * room + 1 / np.sqrt(ITEMS), (name, votes)
        floor = every_score(constant, table)["kl"]
        assert way.bounds["kl"].floor == pytest.approx(floor, rel=0.05)


def test_the_error_of_skill_is_what_repeated_tests_vary_by():
    rng = np.random.default_rng(4)
    truth = dirichlet(rng, 3, sharp=True)
    counts = rng.multinomial(30, truth)
    (way,) = spendings(counts, votes=(600,))
    assert way.items == 200
    gains = []
    for _ in range(300):
        some = truth[rng.choice(ITEMS, way.items)]
        votes = rng.multinomial(600, some) / 600
        model, constant = some, np.tile(truth.mean(0), (way.items, 1))
        nll = [per_item_nll(said, votes) for said in (constant, model)]
        gains.append(nll[0] - nll[1])
    assert way.error == pytest.approx(np.std(gains) / np.mean(gains), rel=0.2)


def per_item_nll(said: np.ndarray, votes: np.ndarray) -> float:
    return float(per_item.nll(torch.from_numpy(said), torch.from_numpy(votes)).mean())
