"""The part that each group of items, and of votes, has in a score: by leaving items out, and by
drawing votes anew.
"""

from typing import NamedTuple

import numpy as np
import torch

from core.randomness import generator
from metrics import Score
from studies.analysis.uncertainty.spread import COARSE, GROUPS, group_of


class Votes(NamedTuple):
    """Shares of items' votes, those of as many votes drawn from them, and by how much these vary
    less than votes drawn from the truth do.
    """

    shares: np.ndarray  # [N, K]
    drawn: np.ndarray  # [N, K]
    stretch: np.ndarray  # [N]


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
    """What a score changes by when one group's votes alone are drawn anew, [groups]."""
    model, people, drawn = (torch.from_numpy(table) for table in (probs, votes.shares, votes.drawn))
    if score.per_item:
        values = (score.items(model, drawn) - score.items(model, people)).double().numpy()
        return _by_group(values * votes.stretch / len(values), index)
    groups, whole = group_of(index, COARSE), float(score.value(model, people))
    parts = np.zeros(COARSE)
    for group in np.unique(groups):
        chosen = torch.from_numpy(groups == group)[:, None]
        changed = float(score.value(model, torch.where(chosen, drawn, people)))
        parts[group] = (changed - whole) * votes.stretch.mean()
    return parts


def votes_drawn_anew(counts: np.ndarray, seed: int = 0) -> Votes:
    """As many votes of each item as it has, drawn from their shares; of items with two votes or
    more, because one says nothing of how votes vary.

    Shares of m votes vary by (m - 1) / m of what votes do, in the mean over votes, hence the
    stretch. (Drawing from what a model of all votes leaves open would know less of an item than the
    predictions that are judged, and call votes more random than they are.)

    >>> votes = votes_drawn_anew(np.array([[3, 0], [2, 2]]))
    >>> votes.drawn.sum(1), votes.stretch.round(3)
    (array([1., 1.]), array([1.225, 1.155]))
    """
    votes = counts.sum(1)
    shares = counts / votes[:, None]
    drawn = generator(seed, "votes drawn anew").multinomial(votes, shares) / votes[:, None]
    return Votes(shares, drawn, np.sqrt(votes / (votes - 1)))


def _by_group(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.bincount(group_of(index, GROUPS), weights=values, minlength=GROUPS)
