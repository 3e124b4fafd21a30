"""Chances of a sum of signed ranks: what Wilcoxon's test rests on, exact or very nearly so.

Without an effect, each of n ranks counts or does not, as a coin falls. The exact distribution takes
time and memory that grow as n³ and n²: 0.1 s for 500 pairs, a minute for 2,500. Beyond
`EXACT_PAIRS`, Lugannani and Rice's saddlepoint formula for lattices (Daniels 1987) takes its place.
Unlike the normal approximation it has a small *relative* error, so that p-values of 1e-10 can be
compared and adjusted like any others:

- with as many as 50 different ranks, 0.01 % of any p above 1e-12 (the normal approximation: over
  50 %);
- where thousands of ties leave two to six different ranks, sums come in lumps that no smooth
  formula follows: 15 % of p, which is what the next possible sum changes it by.

tests/studies/analysis/test_signed_ranks.py holds both against the exact distribution.
"""

import math

import numpy as np
from scipy.special import ndtr

EXACT_PAIRS = 500
_CENTRE = 0.1  # standard deviations; nearer to the mean, the saddlepoint formula is 0/0


def tails(twice_ranks: np.ndarray, observed: int) -> tuple[float, float]:
    """The chances that twice the sum of the positive ranks is at most, and at least, `observed`.

    Twice, because tied values share their mean rank, which may be a half.

    >>> tails(np.array([2, 4, 6]), 10)  # of 8 equally likely sums
    (0.875, 0.25)
    """
    if len(twice_ranks) <= EXACT_PAIRS:
        step = np.gcd.reduce(twice_ranks) if len(twice_ranks) else 1
        chances = exact_chances(np.sort(twice_ranks) // step)
        at_most, at_least = observed // step, -(-observed // step)
        return float(chances[: at_most + 1].sum()), float(chances[at_least:].sum())
    # the distribution is symmetric
    other = int(twice_ranks.sum()) - observed
    return saddlepoint_tail(twice_ranks, other), saddlepoint_tail(twice_ranks, observed)


def exact_chances(twice_ranks: np.ndarray) -> np.ndarray:
    """The chance of every value that twice the rank sum may have, from 0 to all ranks together.

    >>> exact_chances(np.array([1, 1, 2])).tolist()
    [0.125, 0.25, 0.25, 0.25, 0.125]
    """
    chances = np.zeros(twice_ranks.sum() + 1)
    chances[0], end = 1, 1
    for rank in twice_ranks:
        with_rank = chances[:end].copy()
        end += rank
        chances[rank:end] += with_rank
        chances[:end] /= 2
    return chances


def saddlepoint_tail(twice_ranks: np.ndarray, observed: int) -> float:
    """The chance that twice the rank sum is at least `observed`, nearly.

    >>> ranks = 2 * np.arange(1, 101)
    >>> exact, nearly = exact_chances(ranks)[7500:].sum(), saddlepoint_tail(ranks, 7500)
    >>> f"{exact:.4g} {nearly:.4g}"
    '8.039e-06 8.037e-06'
    """
    span = int(np.gcd.reduce(twice_ranks))  # of the lattice; the sum lies half of it beyond
    half = twice_ranks / 2
    sd = math.sqrt(float(half @ half))
    distance = observed - span / 2 - float(half.sum())
    z = distance / sd
    if abs(z) < _CENTRE:  # Edgeworth's series, whose odd terms are 0
        excess = -2 * float((half**4).sum()) / sd**4
        return float(ndtr(-z) + _density(z) * excess / 24 * (z**3 - 3 * z))
    if abs(distance) >= half.sum():  # beyond all sums
        return float(distance < 0)
    tilt = _tilt(half, distance, sd)
    u = np.abs(half * tilt)
    log_cosh = float((u + np.log1p(np.exp(-2 * u)) - math.log(2)).sum())
    w = math.copysign(math.sqrt(2 * max(tilt * distance - log_cosh, 0.0)), tilt)
    spread = math.sqrt(float(((half / np.cosh(np.minimum(u, 300))) ** 2).sum()))
    v = 2 * math.sinh(span * tilt / 2) / span * spread
    return float(ndtr(-w) + _density(w) * (1 / v - 1 / w)) if v else 0.0


def _tilt(half: np.ndarray, distance: float, sd: float) -> float:
    """Where the tilted ranks' mean is so far from the middle: Newton's steps, kept in bounds."""
    low, high = (0.0, math.inf) if distance > 0 else (-math.inf, 0.0)
    tilt = distance / sd**2
    for _ in range(200):
        mean = np.tanh(half * tilt)
        beyond = float(half @ mean) - distance
        low, high = (low, tilt) if beyond > 0 else (tilt, high)
        slope = float((half**2) @ (1 - mean**2))
        following = tilt - beyond / slope if slope else math.nan
        if not low < following < high:
            following = 2 * tilt if math.isinf(high - low) else (low + high) / 2
        if abs(following - tilt) <= 1e-13 * abs(tilt):
            break
        tilt = following
    return tilt


def _density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
