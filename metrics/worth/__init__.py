"""What a score is worth: the best that a constant gets, the best that anybody could get, and where
between the two a model stands.

Imports core and metrics.
"""

from metrics.worth.bounds import Bounds, ceiling_in_words, skill_in_words
from metrics.worth.ceilings import part_bounds, score_bounds
from metrics.worth.floors import LEAST_ITEMS, best_constants, score_floors
from metrics.worth.split_half import split_half_scores
from metrics.worth.votes_per_item import Spending, spendings

__all__ = [
    "LEAST_ITEMS",
    "Bounds",
    "Spending",
    "best_constants",
    "ceiling_in_words",
    "part_bounds",
    "score_bounds",
    "score_floors",
    "skill_in_words",
    "spendings",
    "split_half_scores",
]
