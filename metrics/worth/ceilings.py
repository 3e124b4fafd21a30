"""The floor and the ceiling of every score, from votes alone.

Floor: the best constant prediction, out of the training items' votes. Ceiling: what a model would
score that knew each item's true distribution. It is not perfect: votes are few, and differ from the
distribution that they are drawn from.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from core.randomness import generator, some_of
from metrics.registry import Score, registered
from metrics.worth.bounds import Bounds
from metrics.worth.floors import (
    LEAST_ITEMS,
    check_items,
    score_floors,
    score_values,
    vote_shares,
)
from metrics.worth.plausible_priors import plausible_priors
from metrics.worth.vote_prior import VotePrior

DRAWS = 2  # of all items' distributions, under the best prior
# A sample of a larger table says as much about how far the ceilings of other priors are from that
# of the best one.
MOST_FOR_EXTREMES = 5_000


def score_bounds(
    train_counts: np.ndarray,
    counts: np.ndarray,
    scores: Sequence[Score] | None = None,
    seed: int = 0,
) -> dict[str, Bounds]:
    """Floor and ceiling of each score on items with these votes [N, K], by the score's name.

    >>> votes = np.array([[5, 0], [4, 1], [0, 5], [2, 3]] * 50)
    >>> nll = score_bounds(votes, votes)["soft_nll"]
    >>> nll.ceiling < nll.floor, nll.skill(nll.ceiling)
    (True, 1.0)
    """
    check_items(len(counts), "items have votes")
    every = {"": np.ones(len(counts), bool)}
    return part_bounds(vote_shares(train_counts), counts, every, scores, seed)[""]


def part_bounds(
    train_probs: np.ndarray,
    counts: np.ndarray,
    parts: Mapping[str, np.ndarray],
    scores: Sequence[Score] | None = None,
    seed: int = 0,
) -> dict[str, dict[str, Bounds]]:
    """The same for parts of the items, by their masks. What is not known of an item's distribution
    is learned from all items. Parts of fewer than three items are left out.
    """
    scores = list(registered().values() if scores is None else scores)
    parts = {name: mask for name, mask in parts.items() if mask.sum() >= LEAST_ITEMS}
    if not parts:
        return {}
    votes = vote_shares(counts)
    masks = list(parts.values())
    best, *extremes = plausible_priors(counts, seed)
    drawn = [
        _truth_scores(best, counts, votes, masks, scores, generator(seed, "truth", 0, draw))
        for draw in range(DRAWS)
    ]
    ceilings = np.mean(drawn, 0)
    rows = some_of(np.arange(len(counts)), MOST_FOR_EXTREMES, seed)
    fewer = (counts[rows], votes[rows], [mask[rows] for mask in masks], scores)
    near = (
        ceilings
        if len(rows) == len(counts)
        else _truth_scores(best, *fewer, generator(seed, "truth of some", 0))
    )
    shifts = [
        _truth_scores(prior, *fewer, generator(seed, "truth", which, 0)) - near
        for which, prior in enumerate(extremes, start=1)
    ]
    ends = ceilings + np.stack([np.zeros_like(ceilings), *shifts])
    return {
        name: bounds_of_ends(scores, score_floors(train_probs, votes[mask], scores), ends[:, place])
        for place, (name, mask) in enumerate(parts.items())
    }


def _truth_scores(
    prior: VotePrior,
    counts: np.ndarray,
    votes: np.ndarray,
    masks: Sequence[np.ndarray],
    scores: Sequence[Score],
    rng: np.random.Generator,
) -> np.ndarray:
    """What distributions that items may have score against their votes [parts, scores]; NaN where
    a score is not defined.
    """
    truth = prior.draw(counts, rng)
    return np.stack(
        [
            score_values(scores, truth, votes)
            if mask.all()
            else score_values(scores, truth[mask], votes[mask])
            if mask.any()
            else np.full(len(scores), np.nan)
            for mask in masks
        ]
    )


def bounds_of_ends(
    scores: Sequence[Score], floors: Mapping[str, float | None], ends: np.ndarray
) -> dict[str, Bounds]:
    """Of ceilings [priors, scores], the best prior's first. Whoever knows the truth can say the
    best constant, too, so no ceiling is worse than the floor.
    """
    found = {}
    for score, column in zip(scores, ends.T, strict=True):
        floor = floors[score.name]
        if floor is not None and score.better:
            column = (np.minimum if score.better == "lower" else np.maximum)(column, floor)
        defined = column[np.isfinite(column)]
        known = np.isfinite(column[0])
        numbers = map(float, (column[0], defined.min(), defined.max())) if known else ()
        found[score.name] = Bounds(floor, *numbers)
    return found
