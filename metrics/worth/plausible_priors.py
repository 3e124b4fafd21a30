"""The priors that the votes cannot tell apart.

With few votes an item, many mixtures explain a table equally well, and they disagree about what the
best model would score. So besides the best prior there are extreme ones: the weights of a rich set
of Dirichlets are pushed as far as the votes' log-likelihood allows (a profile interval), up and
down in each respect that scores depend on.
"""

import numpy as np

from core.randomness import some_of
from metrics.worth.dirichlet_mixture import LEAST, MOST, MOST_CLASSES, fit_mixture
from metrics.worth.respects import rewards
from metrics.worth.vote_prior import VotePrior, fewer_votes

FIT_ITEMS = 3000  # a sample of a larger table says as much about where items lie
DROP = (
    3.32  # of the log-likelihood: half the 99 % quantile of chi-squared with one degree of freedom
)
SCALES = np.geomspace(0.25, 64, 7)  # of a fitted component's precision
NEAR = np.geomspace(0.5, 4, 13)  # the same, of all components at once


def plausible_priors(counts: np.ndarray, seed: int) -> list[VotePrior]:
    """The best prior first, then the extreme ones."""
    counts = fewer_votes(counts[some_of(np.arange(len(counts)), FIT_ITEMS, seed)])
    fits = [fit_mixture(counts, per_class) for per_class in (0, 1, 2)]
    best = max(fits, key=lambda fit: fit.aic).prior
    dictionary = _dictionary([fit.prior for fit in fits], counts)
    return [best, *_narrower_and_broader(best, counts), *_extremes(counts, dictionary, seed)]


def _narrower_and_broader(best: VotePrior, counts: np.ndarray) -> list[VotePrior]:
    """The best prior with all its precisions as low, and as high, as the votes allow."""
    rows, repeats = np.unique(counts, axis=0, return_counts=True)
    scaled = [VotePrior(np.clip(best.alphas * scale, LEAST, MOST), best.weights) for scale in NEAR]
    fits = np.array([prior.log_likelihood(rows, repeats) for prior in scaled])
    allowed = np.flatnonzero(fits >= fits.max() - DROP)
    return [scaled[allowed[0]], scaled[allowed[-1]]]


def _dictionary(priors: list[VotePrior], counts: np.ndarray) -> np.ndarray:
    """Dirichlets [D, K] rich enough to hold whatever explains the votes: the fitted ones, broader
    and narrower, and a certain one for each class that has votes.
    """
    fitted = np.concatenate([prior.alphas for prior in priors])
    common = np.argsort(-counts.sum(0), kind="stable")[:MOST_CLASSES]
    certain = np.eye(fitted.shape[1])[common] * 200 + 0.02
    scaled = (fitted[None] * SCALES[:, None, None]).reshape(-1, fitted.shape[1])
    return np.clip(np.concatenate([scaled, certain]), LEAST, MOST)


def _extremes(counts: np.ndarray, alphas: np.ndarray, seed: int) -> list[VotePrior]:
    rows, repeats = np.unique(counts, axis=0, return_counts=True)
    equal = VotePrior(alphas, np.full(len(alphas), 1 / len(alphas)))
    logs = np.concatenate([block for _, block in equal.log_likelihoods(rows)])
    likelihood = np.exp(logs - logs.max(1, keepdims=True)).astype(np.float32)
    repeats = repeats.astype(np.float32)
    weights = _likeliest(likelihood, repeats, np.zeros(len(alphas)), equal.weights, 300)
    return [
        VotePrior(alphas, _pushed(likelihood, repeats, sign * reward, weights)).likely()
        for reward in rewards(alphas, weights, counts.sum(1), seed)
        for sign in (1, -1)
    ]


def _pushed(
    likelihood: np.ndarray, repeats: np.ndarray, reward: np.ndarray, best: np.ndarray
) -> np.ndarray:
    """Weights with as much of the reward as a log-likelihood of `DROP` below the best can buy."""
    reward = (reward - reward.min()) / max(np.ptp(reward), 1e-12)
    top = _log_likelihood(likelihood, repeats, best)
    start = best + 1e-5
    force, bought = 1e-2 * repeats.sum(), best
    for _ in range(5):  # the price grows with the square of the force, or nearly so
        pushed = _likeliest(likelihood, repeats, force * reward, start / start.sum(), 60)
        price = max(top - _log_likelihood(likelihood, repeats, pushed), 1e-3)
        if price <= 1.25 * DROP:
            bought = pushed
        if 0.75 * DROP < price <= 1.25 * DROP:
            break
        force *= np.sqrt(DROP / price)
    return bought


def _likeliest(
    likelihood: np.ndarray, repeats: np.ndarray, reward: np.ndarray, start: np.ndarray, steps: int
) -> np.ndarray:
    """Expectation maximisation of the log-likelihood plus reward, over the weights alone."""
    weights, reward = start.astype(np.float32), reward.astype(np.float32)
    for _ in range(steps):
        updated = weights * (likelihood.T @ (repeats / (likelihood @ weights)) + reward)
        updated /= updated.sum()
        moved = np.abs(updated - weights).max()
        weights = updated
        if moved < 1e-5:
            break
    return weights.astype(np.float64) / weights.sum(dtype=np.float64)


def _log_likelihood(likelihood: np.ndarray, repeats: np.ndarray, weights: np.ndarray) -> float:
    return float(repeats.astype(np.float64) @ np.log(likelihood @ weights))
