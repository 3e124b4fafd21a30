"""Where items' unknown distributions lie: a mixture of Dirichlet distributions.

Votes are a multinomial sample of an item's distribution. So what is known of it after the votes is
again a mixture of Dirichlets, from which it can be drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

BLOCK = 1 << 21  # likelihoods that are worked on at once: memory stays small beside the votes
MOST_VOTES = 500  # of an item that tell which component it is of: more would not tell it better


@dataclass(frozen=True)
class VotePrior:
    """A mixture of Dirichlets over K classes."""

    alphas: np.ndarray  # [components, K]
    weights: np.ndarray  # [components]

    def likely(self) -> "VotePrior":
        """The same without components that no item has."""
        kept = self.weights > 1e-7
        return VotePrior(self.alphas[kept], self.weights[kept] / self.weights[kept].sum())

    def draw(self, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One distribution for each item [N, K], from what its votes leave open.

        >>> sure = VotePrior(np.array([[50.0, 50.0]]), np.ones(1))
        >>> sure.draw(np.array([[3, 0]]), np.random.default_rng(0)).round(1)
        array([[0.5, 0.5]])
        """
        drawn = np.empty(counts.shape)
        for rows, scores in self.log_likelihoods(counts):
            scores += np.log(self.weights)
            scores -= scores.max(1, keepdims=True)
            reached = np.exp(scores, out=scores).cumsum(1)
            chance = rng.random((len(reached), 1)) * reached[:, -1:]
            component = (reached < chance).sum(1)
            gammas = rng.standard_gamma(self.alphas[component] + counts[rows])
            gammas = np.maximum(gammas, 1e-300)
            drawn[rows] = gammas / gammas.sum(1, keepdims=True)
        return drawn

    def log_likelihoods(self, counts: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Of blocks of items: which they are, and the log-likelihood of their votes under each
        component [n, components], up to a constant of the item.
        """
        totals = self.alphas.sum(1)
        size = max(1, BLOCK // len(self.weights))
        for start in range(0, len(counts), size):
            rows = slice(start, start + size)
            votes = fewer_votes(counts[rows])
            each = votes.sum(1)
            result = -log_rising(totals, each.max()).T[each]
            for label in np.flatnonzero(votes.any(0)):
                column = votes[:, label]
                result += log_rising(self.alphas[:, label], column.max()).T[column]
            yield rows, result

    def log_likelihood(self, counts: np.ndarray, repeats: np.ndarray) -> float:
        """Of all votes together, where each row of counts comes so many times; up to a constant."""
        total = 0.0
        for rows, scores in self.log_likelihoods(counts):
            each: np.ndarray = np.logaddexp.reduce(scores + np.log(self.weights), axis=1)
            total += float(repeats[rows] @ each)
        return total


def fewer_votes(counts: np.ndarray) -> np.ndarray:
    """The same shares of at most `MOST_VOTES` votes, or about as many: tables over numbers of votes
    stay small.

    >>> fewer_votes(np.array([[2, 1], [40_000, 10_000]])).tolist()
    [[2, 1], [400, 100]]
    """
    totals = counts.sum(1, keepdims=True, dtype=np.int64)
    if totals.max(initial=0) <= MOST_VOTES:
        return counts
    return np.rint(counts * np.minimum(1, MOST_VOTES / totals)).astype(np.int64)


def log_rising(alphas: np.ndarray, most: int) -> np.ndarray:
    """log Γ(a + n) − log Γ(a) for n = 0 … most, as a last dimension: counts are few, so looking
    them up is all that is left to do for an item.
    """
    steps = np.arange(most + 1)
    return gammaln(alphas[..., None] + steps) - gammaln(alphas)[..., None]
