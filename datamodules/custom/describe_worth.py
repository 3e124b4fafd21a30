"""What scores on a dataset can be: floor, ceiling and what people score themselves, and how that
would change with other numbers of votes; from the votes alone.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from core.errors import InputError
from core.randomness import some_of
from datamodules.votes.table import VoteTable
from metrics import Score, registered
from metrics.worth import (
    LEAST_ITEMS,
    Bounds,
    Spending,
    ceiling_in_words,
    score_bounds,
    score_floors,
    spendings,
    split_half_scores,
)

# a sample of a larger table says as much; fewer items of more than ten classes
MOST_ITEMS, ENOUGH = 20_000, 1_000
# scores that are told by votes per item
CURVES = ("soft_nll", "kl", "accuracy", "entropy_spearman")
SEED = 0


def describe_worth(votes: VoteTable, ordinal: bool = False) -> Iterator[str]:
    """Three tables, as lines of text: what scores are worth, what other numbers of votes on each
    item would change, and what as many votes are worth that are spent otherwise.

    `ordinal` classes are ratings, which have scores of their own.
    """
    if len(votes) < LEAST_ITEMS:
        yield _line("worth", f"not known, it takes {LEAST_ITEMS} items or more")
        return
    most = max(ENOUGH, min(MOST_ITEMS, 10 * MOST_ITEMS // votes.num_classes))
    some = f", of {most:,} of them" * (len(votes) > most)
    votes = votes.take(some_of(np.arange(len(votes)), most, SEED))
    if votes.counts is None:
        yield _line("worth", f"floors{some}; ceilings are not known, there are only probabilities")
    else:
        yield _line("worth", f"what scores on these items can be{some}:")
        yield "  floor: the best constant; ceiling: a model that knew each item's distribution;"
        yield "  halves: one half of each item's annotators and a vote more, judged by the others"
    yield from _of_scores(votes, ordinal)
    if votes.counts is not None:
        curves = [registered()[name] for name in CURVES]
        ways = spendings(votes.counts, scores=curves, seed=SEED)
        yield from _of_votes(ways)
        yield from _of_budget(ways)


def _of_scores(votes: VoteTable, ordinal: bool) -> Iterator[str]:
    scores = [score for score in registered(ordinal).values() if score.floor]
    if votes.counts is None:
        floors = score_floors(votes.probs, votes.probs, scores)
        bounds, halves = {name: Bounds(floor) for name, floor in floors.items()}, {}
    else:
        bounds = score_bounds(votes.counts, votes.counts, scores, SEED)
        halves = _halves(votes.counts, scores)
    rows = [
        (
            score.name,
            _number(bounds[score.name].floor),
            ceiling_in_words(bounds[score.name]),
            _number(halves.get(score.name)),
        )
        for score in scores
    ]
    yield from columns(("", "floor", "ceiling", "halves"), rows)


def _halves(counts: np.ndarray, scores: Sequence[Score]) -> dict[str, float]:
    try:
        return split_half_scores(counts, scores, SEED)
    except InputError:  # too few items have two votes: dashes say so
        return {}


def _of_votes(ways: Sequence[Spending]) -> Iterator[str]:
    yield _line("by votes", "floor > ceiling, if each of these items had so many votes:")
    yield from columns(
        ("votes", *CURVES),
        [
            (
                f"{way.votes}",
                *(_pair(way.bounds[name]) for name in CURVES),
            )
            for way in ways
        ],
    )


def _pair(bounds: Bounds) -> str:
    floor = f"{_number(bounds.floor, 3)} > " if bounds.floor else ""  # 0 of all correlations
    return floor + ceiling_in_words(bounds, 3)


def _of_budget(ways: Sequence[Spending]) -> Iterator[str]:
    yield _line("budget", "as many votes as these, spent on test items otherwise:")
    yield from columns(
        ("items", "votes each", "error of skill", "ceiling of entropy_spearman"),
        [
            (
                f"{way.items:,}",
                f"{way.votes}",
                "-" if way.error is None else f"{100 * way.error:.1f} %",
                ceiling_in_words(way.bounds["entropy_spearman"], 3),
            )
            for way in ways
        ],
    )
    yield "  error of skill: the standard error, over items and votes, of the skill in soft NLL of"
    yield "  a model as good as the ceiling. More items make it smaller; more votes on each let a"
    yield "  model show that it knows on which items people disagree. Votes alone cannot say what"
    yield "  trains a better model: for that, train with data.votes_per_item at both ends."


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table as lines of text: the first column to the left, numbers to the right.

    >>> print("\\n".join(columns(("", "floor"), [("kl", "0.4"), ("accuracy", "0.25")])))
                floor
      kl          0.4
      accuracy   0.25
    """
    table = [head, *rows]
    wide = [max(len(row[place]) for row in table) for place in range(len(head))]
    for row in table:
        numbers = "".join(
            f"  {cell:>{width}}" for cell, width in zip(row[1:], wide[1:], strict=True)
        )
        yield f"  {row[0]:{wide[0]}}{numbers}".rstrip()


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _line(name: str, message: str) -> str:
    return f"{name:16s}{message}"
