"""Fit a mixture of Dirichlet-multinomials to votes, by expectation maximisation (Minka's fixed
point for the Dirichlets).
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import digamma, entr

from metrics.worth.vote_prior import VotePrior, log_rising

MOST_CLASSES = 50  # that get components of their own
LEAST, MOST = 1e-3, 1e4  # of a Dirichlet's parameters


@dataclass(frozen=True)
class Fit:
    """A fitted prior and how well it explains the votes."""

    prior: VotePrior
    log_likelihood: float

    @property
    def aic(self) -> float:
        """Akaike's criterion, as a log-likelihood: larger is better."""
        return self.log_likelihood - self.prior.alphas.size - len(self.prior.weights) + 1


def fit_mixture(counts: np.ndarray, per_class: int, steps: int = 100) -> Fit:
    """A mixture with so many components for each class that is some item's majority, and a broad
    one; with none, a single Dirichlet.
    """
    rows, repeats = np.unique(counts, axis=0, return_counts=True)
    classes = rows.shape[1]
    alphas, weights = _start(counts, per_class)
    of_counts = _one_hot(rows)
    of_totals = _one_hot(rows.sum(1, keepdims=True))
    most, most_total = rows.max(), rows.sum(1).max()
    before = -np.inf
    for _ in range(steps):
        table = log_rising(alphas, most).reshape(len(alphas), -1)
        scores = of_counts @ table.T - of_totals @ log_rising(alphas.sum(1), most_total).T
        scores += np.log(weights)
        top = scores.max(1, keepdims=True)
        shares = np.exp(scores - top)
        sums = shares.sum(1, keepdims=True)
        fitted = float(repeats @ (top + np.log(sums))[:, 0])
        if fitted - before < 1e-6 * len(counts):
            break
        before = fitted
        shares *= repeats[:, None] / sums
        weights = np.maximum(shares.sum(0) / len(counts), 1e-9)
        weights /= weights.sum()
        seen = (of_counts.T @ shares).T.reshape(len(alphas), classes, -1)
        seen_totals = (of_totals.T @ shares).T
        for _ in range(2):
            alphas = _fixed_point(alphas, seen, seen_totals)
    return Fit(VotePrior(alphas, weights), before)


def _fixed_point(alphas: np.ndarray, seen: np.ndarray, seen_totals: np.ndarray) -> np.ndarray:
    """A step towards the likeliest Dirichlets, from how much of each component has so many votes
    for a class [components, K, votes], and in all [components, votes].
    """
    steps, totals = np.arange(seen.shape[-1]), alphas.sum(1)
    wanted = (seen * (digamma(alphas[..., None] + steps) - digamma(alphas)[..., None])).sum(-1)
    steps = np.arange(seen_totals.shape[-1])
    given = (seen_totals * (digamma(totals[:, None] + steps) - digamma(totals)[:, None])).sum(-1)
    return np.clip(alphas * (wanted + 1e-9) / (given[:, None] + 1e-9), LEAST, MOST)


def _start(counts: np.ndarray, per_class: int) -> tuple[np.ndarray, np.ndarray]:
    """Components to start from: of each majority class, items in groups from the most to the least
    agreed upon; the agreed ones narrow.
    """
    mean = counts.sum(0) / counts.sum()
    broad = np.maximum(mean * counts.shape[1], LEAST)
    if not per_class:
        return broad[None], np.ones(1)
    probs = counts / counts.sum(1, keepdims=True)
    majority, entropy = probs.argmax(1), entr(probs).sum(1)
    common = np.argsort(-np.bincount(majority), kind="stable")[:MOST_CLASSES]
    alphas, sizes = [broad], [len(counts) / 10]
    for label in common:
        rows = np.flatnonzero(majority == label)
        if len(rows) < 2 * per_class:
            continue
        ordered = rows[np.argsort(entropy[rows], kind="stable")]
        precisions = np.geomspace(30, 3, per_class)
        for part, precision in zip(np.array_split(ordered, per_class), precisions, strict=True):
            alphas.append(precision * (counts[part].sum(0) + mean) / (counts[part].sum() + 1))
            sizes.append(len(part))
    return np.maximum(alphas, LEAST), np.array(sizes) / sum(sizes)


def _one_hot(rows: np.ndarray) -> csr_matrix:
    """A sparse matrix that adds up, for each row of counts, what a table [K * (votes + 1)] says of
    its entries.
    """
    items, columns = rows.shape
    width = rows.max() + 1
    places = (np.arange(columns) * width + rows).ravel()
    starts = np.arange(0, items * columns + 1, columns)
    return csr_matrix((np.ones(items * columns), places, starts), shape=(items, columns * width))
