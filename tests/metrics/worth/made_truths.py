"""Distributions of items that are known because they were made."""

import numpy as np

from metrics import registered

ITEMS = 4000
# smooth calibration errors take as long as all others together
SCORES = [score for score in registered().values() if "smooth" not in score.name]


def dirichlet(rng: np.random.Generator, classes: int, sharp: bool) -> np.ndarray:
    mean = rng.dirichlet(np.full(classes, 5.0))
    return rng.dirichlet(mean * classes * (0.15 if sharp else 2.0), ITEMS)


def logistic_normal(rng: np.random.Generator, classes: int, sharp: bool) -> np.ndarray:
    """No mixture of a few Dirichlets: correlated normal logits."""
    mixing = np.eye(classes) + rng.normal(0, 0.5, (classes, classes)) / np.sqrt(classes)
    logits = rng.normal(0, 0.5, classes) + rng.normal(size=(ITEMS, classes)) @ mixing * (
        4.0 if sharp else 0.8
    )
    chances = np.exp(logits - logits.max(1, keepdims=True))
    return chances / chances.sum(1, keepdims=True)


def mostly_agreed(rng: np.random.Generator, classes: int, sharp: bool) -> np.ndarray:
    """Each item has a class that stands out by far: of most, all annotators will say the same."""
    chosen = np.eye(classes)[rng.integers(classes, size=ITEMS)]
    logits = rng.normal(0, 1.5, (ITEMS, classes)) + chosen * rng.normal(
        9 if sharp else 6, 2.5, (ITEMS, 1)
    )
    chances = np.exp(logits - logits.max(1, keepdims=True))
    return chances / chances.sum(1, keepdims=True)
