"""The part that each group of items, and of votes, has in a score: by leaving items out, and by
drawing votes anew.
"""

from typing import NamedTuple

import numpy as np
import torch

from core.randomness import generator, some_of
from metrics import Score
from metrics.worth.dirichlet_mixture import fit_mixture
from studies.analysis.uncertainty.spread import COARSE, GROUPS, group_of

FIT_ITEMS = 3000  # of a larger table: a sample says as much about where items lie


class Votes(NamedTuple):
    """Distributions of items, and the shares of votes that were drawn from them: [N, K]."""

    truth: np.ndarray
    drawn: np.ndarray


def item_parts(
    score: Score, probs: np.ndarray, target_probs: np.ndarray, index: np.ndarray
) -> np.ndarray:
    """What each group of items adds to a score, [groups].

    Of a mean over items it is the sum of the group's distances from that mean, over all items. Of
    any other score it is what leaving out the group changes (the jackknife), times the share of
    items left, which for means is the same.

    >>> from metrics import registered
    >>> said, people = np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([[1.0, 0.0], [0.5, 0.5]])
    >>> parts = item_parts(registered()["soft_brier"], said, people, np.arange(2))
    >>> parts[parts != 0].round(4)  # a half of 0.02 - 0.01, and of 0 - 0.01
    array([ 0.005, -0.005])
    """
    model, people = torch.from_numpy(probs), torch.from_numpy(target_probs)
    if score.per_item:
        values = score.items(model, people).double().numpy()
        return _by_group((values - values.mean()) / len(values), index)
    groups, whole = group_of(index, COARSE), float(score.value(model, people))
    parts = np.zeros(COARSE)
    for group in np.unique(groups):
        left = torch.from_numpy(groups != group)
        without = float(score.value(model[left], people[left]))
        parts[group] = (whole - without) * float(left.double().mean())
    return parts


def vote_parts(score: Score, probs: np.ndarray, votes: Votes, index: np.ndarray) -> np.ndarray:
    """What a score changes by when one group of items is judged by votes instead of by the
    distributions that they were drawn from, [groups].
    """
    model, truth, drawn = (torch.from_numpy(table) for table in (probs, votes.truth, votes.drawn))
    if score.per_item:
        values = (score.items(model, drawn) - score.items(model, truth)).double().numpy()
        return _by_group(values / len(values), index)
    groups, whole = group_of(index, COARSE), float(score.value(model, truth))
    parts = np.zeros(COARSE)
    for group in np.unique(groups):
        chosen = torch.from_numpy(groups == group)[:, None]
        parts[group] = float(score.value(model, torch.where(chosen, drawn, truth))) - whole
    return parts


def votes_drawn_anew(counts: np.ndarray, seed: int = 0) -> Votes:
    """As many votes of each item as it has, of distributions that its own votes leave open.

    Votes drawn from the shares of few votes would vary too little: of an item on which three people
    agree, not at all. So distributions are drawn from what a mixture of Dirichlets, fitted to all
    items, leaves open after an item's votes.

    >>> truth, drawn = votes_drawn_anew(np.array([[3, 0], [0, 3], [2, 1], [1, 2]]))
    >>> np.allclose(truth.sum(1), 1), set((3 * drawn.sum(1)).round())
    (True, {np.float64(3.0)})
    """
    prior = fit_mixture(counts[some_of(np.arange(len(counts)), FIT_ITEMS, seed)], 2).prior
    rng, votes = generator(seed, "votes drawn anew"), counts.sum(1)
    truth = prior.draw(counts, rng)
    return Votes(truth, rng.multinomial(votes, truth) / votes[:, None])


def _by_group(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.bincount(group_of(index, GROUPS), weights=values, minlength=GROUPS)
