"""What a score is worth: the best that a constant gets, the best that anybody could get, and where
between the two a model stands.

Imports core and metrics.
"""

from metrics.worth.bounds import Bounds, score_bounds, split_half_scores

__all__ = ["Bounds", "score_bounds", "split_half_scores"]
