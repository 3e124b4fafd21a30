"""In which respects priors may differ that votes cannot tell apart: what scores depend on, as one
number for each Dirichlet.
"""

import numpy as np
from scipy.special import entr

from core.randomness import generator

DRAWS = 100  # of each Dirichlet, to know what it would score; fewer of more than ten classes


def rewards(
    alphas: np.ndarray, weights: np.ndarray, totals: np.ndarray, seed: int
) -> list[np.ndarray]:
    """One number for each Dirichlet [D, K] of a mixture, for each respect: the mean entropy of its
    items, how often an item's likeliest class is the majority of its votes, and how much both
    correlations between an item's entropy and that of its votes grow with its weight. Items have
    as many votes as one of `totals`.
    """
    rng, draws = generator(seed, "draws from priors"), max(10, min(DRAWS, 1000 // alphas.shape[1]))
    gammas = np.maximum(rng.standard_gamma(np.repeat(alphas, draws, 0)), 1e-300)
    truth = gammas / gammas.sum(1, keepdims=True)
    votes = rng.multinomial(rng.choice(totals, len(truth)), truth)
    hits = truth.argmax(1) == votes.argmax(1)
    entropy, seen = (entr(table / table.sum(1, keepdims=True)).sum(1) for table in (truth, votes))
    share = np.repeat(weights / draws, draws)
    respects = (
        entropy,
        hits,
        pearson_slope(entropy, seen, share),
        spearman_slope(entropy, seen, share),
    )
    return [values.reshape(len(weights), draws).mean(1) for values in respects]


def pearson_slope(x: np.ndarray, y: np.ndarray, share: np.ndarray) -> np.ndarray:
    """How much the correlation of x and y grows with each pair's share, up to a factor and a term
    that are the same for all.
    """
    x, y = x - share @ x, y - share @ y
    both = float(share @ (x * y))
    return x * y - sum(_half(both, float(share @ each**2)) * each**2 for each in (x, y))


def spearman_slope(x: np.ndarray, y: np.ndarray, share: np.ndarray) -> np.ndarray:
    """The same of the correlation of ranks. A pair also moves the ranks of all above it."""
    first, second = 1 - _above(x, share), 1 - _above(y, share)  # ranks from 0 to 1
    both = float(share @ (first * second)) - 0.25  # the mean of ranks is 1/2
    slope = first * second + _above(x, share * second) + _above(y, share * first)
    for values, ranks in ((x, first), (y, second)):
        spread = float(share @ ranks**2) - 0.25
        slope -= _half(both, spread) * (ranks**2 + 2 * _above(values, share * ranks))
    return slope


def _half(covariance: float, variance: float) -> float:
    return covariance / max(2 * variance, 1e-12)


def _above(values: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """The mass of all that is larger than each value, and half the mass of its equals."""
    _, group = np.unique(values, return_inverse=True)
    sums = np.bincount(group, mass)
    return (sums.sum() - sums.cumsum() + sums / 2)[group]
