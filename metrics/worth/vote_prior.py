"""Where items' unknown distributions lie: a mixture of Dirichlet distributions.

Votes are a multinomial sample of an item's distribution. So what is known of it after the votes is
again a mixture of Dirichlets, from which it can be drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln

BLOCK = 1 << 21  # likelihoods that are worked on at once: memory stays small beside the votes


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
        for rows, likelihood in self.log_likelihoods(counts):
            scores = likelihood + np.log(self.weights)
            # the largest of logits with Gumbel noise is a draw from their softmax
            component = (scores + rng.gumbel(size=scores.shape)).argmax(1)
            gammas = rng.standard_gamma(self.alphas[component] + counts[rows])
            drawn[rows] = np.maximum(gammas, 1e-300)
        return drawn / drawn.sum(1, keepdims=True)

    def log_likelihoods(self, counts: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Of blocks of items: which they are, and the log-likelihood of their votes under each
        component [n, components], up to a constant of the item.
        """
        totals = counts.sum(1)
        of_counts = log_rising(self.alphas, counts.max())  # [components, K, votes]
        of_totals = log_rising(self.alphas.sum(1), totals.max())
        size = max(1, BLOCK // len(self.weights))
        for start in range(0, len(counts), size):
            rows = slice(start, start + size)
            result = -of_totals.T[totals[rows]]
            for label in range(counts.shape[1]):
                result += of_counts[:, label].T[counts[rows, label]]
            yield rows, result

    def entropies(self) -> np.ndarray:
        """The expected entropy of a draw from each component, in nats.

        >>> VotePrior(np.array([[1.0, 1.0]]), np.ones(1)).entropies()
        array([0.5])
        """
        totals = self.alphas.sum(1, keepdims=True)
        means = self.alphas / totals
        return digamma(totals[:, 0] + 1) - (means * digamma(self.alphas + 1)).sum(1)


def log_rising(alphas: np.ndarray, most: int) -> np.ndarray:
    """log Γ(a + n) − log Γ(a) for n = 0 … most, as a last dimension: counts are few, so looking
    them up is all that is left to do for an item.
    """
    steps = np.arange(most + 1)
    return gammaln(alphas[..., None] + steps) - gammaln(alphas)[..., None]
