"""A claim's verdict, and the one rule by which tests for and against a claim decide it."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Outcome = Literal[
    "supported", "not supported", "mixed", "undecided", "no skill", "no power", "not tested"
]
Pairs = dict[tuple, tuple[float, float]]  # by seed: a value and the one that it is compared with


@dataclass(frozen=True)
class Verdict:
    """An outcome, what it rests on in words, why it could not be decided, and the same as numbers
    for a CSV.
    """

    outcome: Outcome
    statistic: str = ""
    reason: str = ""
    numbers: dict[str, float] = field(default_factory=dict)


def not_tested(reason: str) -> Verdict:
    """The verdict on a claim whose numbers are not there."""
    return Verdict("not tested", reason=reason)


def one_pair_only(pairs: Pairs) -> Verdict:
    """The verdict on a claim about a difference that one seed alone has."""
    reason = "there is one pair only, and a test takes at least 2"
    return Verdict("undecided", reason=reason, numbers={"n": len(pairs)})


def decide(
    for_it: bool, against: bool, statistic: str, reason: str, numbers: dict[str, float]
) -> Verdict:
    """What supports a claim counts first, then what contradicts it; else it is undecided.

    >>> decide(False, False, "mean 0.1", "the interval holds 0", {}).outcome
    'undecided'
    """
    if for_it:
        return Verdict("supported", statistic, "", numbers)
    if against:
        return Verdict("not supported", statistic, "", numbers)
    return Verdict("undecided", statistic, reason, numbers)


def columns(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """The values and those that they are compared with, seed by seed.

    >>> [column.tolist() for column in columns({(0,): (1.0, 2.0), (1,): (3.0, 4.0)})]
    [[1.0, 3.0], [2.0, 4.0]]
    """
    a, b = np.array(list(pairs.values()), dtype=np.float64).T
    return a, b
