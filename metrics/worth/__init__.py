"""What a score is worth: the best that a constant gets, the best that anybody could get, and where
between the two a model stands.

Imports core and metrics.
"""

from metrics.worth.bounds import (
    LEAST_ITEMS,
    Bounds,
    best_constants,
    score_bounds,
    score_floors,
    split_half_scores,
)

__all__ = [
    "LEAST_ITEMS",
    "Bounds",
    "best_constants",
    "score_bounds",
    "score_floors",
    "split_half_scores",
]
