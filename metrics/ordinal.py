"""Scores of classes that are in an order, as ratings are: pure functions of (probs, target_probs),
whose neighbouring classes count as 1 apart. `metrics.functional` has them as well.

>>> polite, rude = [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]
>>> wasserstein_distance([rude], [polite]).item()
2.0
"""

import numpy as np
import torch
from torch import Tensor

from metrics import per_item
from metrics.inputs import Values, distributions


def wasserstein_distance(probs: Values, target_probs: Values) -> Tensor:
    """Mean Wasserstein-1 (earth mover's) distance to the annotators' distribution: how many classes
    far, on average, a share of probability would have to move.
    """
    return per_item.wasserstein(*distributions(probs, target_probs)).mean()


def ranked_probability_score(probs: Values, target_probs: Values) -> Tensor:
    """Mean squared distance between the cumulative distributions, summed over classes.

    Some divide by the number of classes less 1; this is the sum.

    >>> ranked_probability_score([[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0]]).item()
    1.25
    """
    return per_item.rps(*distributions(probs, target_probs)).mean()


def mean_rating_error(probs: Values, target_probs: Values) -> Tensor:
    """Mean absolute error of the model's mean rating against the annotators'.

    With several votes per item there is no one true rating, and sources do not say which to take.
    The mean uses all votes; the majority's class would be a coin toss where two are level.

    >>> mean_rating_error([[0.0, 1.0, 0.0]], [[0.5, 0.0, 0.5]]).item()
    0.0
    """
    return per_item.rating_error(*distributions(probs, target_probs)).mean()


def rating_alpha(probs: Values, target_probs: Values) -> Tensor:
    """Krippendorff's alpha for interval data of two raters: the model's mean rating and the
    annotators'. 1 where they are equal, 0 where they are as far apart as ratings of any two items.

    NaN where all ratings of both are the same. (`datamodules.votes.agreement` has alpha between the
    annotators themselves.)

    >>> round(rating_alpha([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.5, 0.5]]).item(), 4)
    0.7273
    """
    model, people = map(per_item.mean_rating, distributions(probs, target_probs))
    both = torch.cat([model, people])
    if both.min() == both.max():
        return torch.tensor(torch.nan, dtype=torch.float64, device=both.device)
    return 1 - (model - people).square().mean() / (2 * both.var())


def median_steps(train_probs: np.ndarray) -> np.ndarray:
    """The constant that is nearest to training items by Wasserstein-1: the median of each step of
    their cumulative distributions.
    """
    steps = np.median(train_probs.cumsum(1)[:, :-1], 0).clip(0, 1)
    return np.diff(steps, prepend=0, append=1)


def median_rating(train_probs: np.ndarray) -> np.ndarray:
    """A constant whose mean rating is the median of training items' mean ratings.

    >>> median_rating(np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]))
    array([0. , 0.5, 0.5])
    """
    last = train_probs.shape[1] - 1
    rating = np.clip(np.median(train_probs @ np.arange(last + 1.0)), 0, last)
    return (1 - np.abs(np.arange(last + 1) - rating)).clip(0)
