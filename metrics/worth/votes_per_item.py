"""What other numbers of votes per item would change: floors, ceilings, and how precisely a model's
skill is measured, for the same number of votes in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from core.randomness import generator, some_of
from metrics import per_item
from metrics.registry import Score, registered
from metrics.worth.bounds import Bounds
from metrics.worth.ceilings import bounds_of_ends
from metrics.worth.floors import (
    best_constants,
    check_items,
    score_floors,
    score_values,
    vote_shares,
)
from metrics.worth.plausible_priors import plausible_priors

VOTES = (1, 2, 5, 10, 20, 50, 100)
# a sample of a larger table says as much; fewer items of more than ten classes
MOST_ITEMS, ENOUGH = 3000, 300
MOST_DRAWS = 8  # of few votes, which vary more


@dataclass(frozen=True)
class Spending:
    """One way to spend a number of votes: so many on each of so many items like these."""

    votes: int  # on each item
    items: int
    bounds: dict[str, Bounds]  # of each score, if each item had so many votes
    error: float | None  # standard error of the skill in soft NLL of a model as good as the ceiling


def spendings(
    counts: np.ndarray,
    votes: Sequence[int] = VOTES,
    scores: Sequence[Score] | None = None,
    seed: int = 0,
) -> list[Spending]:
    """What becomes of scores where as many votes as there are [N, K] are spent on fewer items with
    more votes each, or on more with fewer.

    >>> table = np.array([[5, 0], [4, 1], [0, 5], [2, 3]] * 50)
    >>> [(way.votes, way.items) for way in spendings(table, votes=(1, 10))]
    [(1, 1000), (10, 100)]
    >>> few, many = spendings(table, votes=(1, 10))
    >>> few.error < many.error, few.bounds["kl"].ceiling > many.bounds["kl"].ceiling
    (True, True)
    """
    check_items(len(counts), "items have votes")
    total = int(counts.sum(dtype=np.int64))
    most = max(ENOUGH, min(MOST_ITEMS, 10 * MOST_ITEMS // counts.shape[1]))
    counts = counts[some_of(np.arange(len(counts)), most, seed)]
    scores = list(registered().values() if scores is None else scores)
    scores = [score for score in scores if score.floor]
    truths = [
        prior.draw(counts, generator(seed, "truth by votes", which))
        for which, prior in enumerate(plausible_priors(counts, seed))
    ]
    return [_spending(truths, each, max(1, total // each), scores, seed) for each in votes]


def _spending(
    truths: Sequence[np.ndarray], votes: int, items: int, scores: Sequence[Score], seed: int
) -> Spending:
    ends, floors, gains = [], [], []
    for draw in range(max(2, min(MOST_DRAWS, 24 // votes))):
        tables = [
            vote_shares(generator(seed, "votes", which, votes, draw).multinomial(votes, truth))
            for which, truth in enumerate(truths)
        ]
        ends.append([score_values(scores, *pair) for pair in zip(truths, tables, strict=True)])
        floors.append(list(score_floors(tables[0], tables[0], scores).values()))
        gains.append(_gain(truths[0], tables[0]))
    mean_floors = np.mean(np.array(floors, float), 0)
    named = {
        score.name: float(floor) if np.isfinite(floor) else None
        for score, floor in zip(scores, mean_floors, strict=True)
    }
    bounds = bounds_of_ends(scores, named, np.mean(ends, 0))
    gain, spread = np.mean(gains), np.std(gains)
    error = float(spread / gain / np.sqrt(items)) if gain > 0 else None
    return Spending(votes, items, bounds, error)


def _gain(truth: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """By how many nats the truth is better than the best constant, item by item."""
    constant = np.broadcast_to(best_constants(votes)["mean"], votes.shape).copy()
    worst, best = (
        per_item.nll(torch.from_numpy(said), torch.from_numpy(votes)) for said in (constant, truth)
    )
    return (worst - best).numpy()
