"""Every score of some predictions on some items: between which floor and ceiling, and how sure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from datamodules.votes.table import VoteTable
from metrics.registry import Score
from metrics.worth import Bounds, best_constants, part_bounds, score_floors
from metrics.worth.floors import score_values
from studies.analysis.statistics import holm
from studies.scoring.resampling import Asked, Spread, spreads

NAN = math.nan


@dataclass(frozen=True)
class Found:
    """One score of one table of predictions; NaN where there is no such number."""

    value: float
    low: float  # the ends of its 95 % interval
    high: float
    skill: float
    skill_low: float
    skill_high: float


@dataclass(frozen=True)
class Difference:
    """One score of a first table minus that of a second, on the same items."""

    score: Score
    first: str
    second: str
    value: float
    low: float
    high: float
    p: float
    holm_p: float  # among all pairs of this score

    @property
    def better(self) -> str:
        """The name of the better one, where that can be told."""
        if not self.holm_p < 0.05 or self.score.better is None:
            return ""
        return self.first if (self.value < 0) == (self.score.better == "lower") else self.second


@dataclass(frozen=True)
class Judgement:
    """All scores of all tables on some items."""

    items: int
    scores: Sequence[Score]
    floors: Mapping[str, float | None]
    bounds: Mapping[str, Bounds]  # empty where ceilings are not known
    found: Mapping[str, Mapping[str, Found]]  # by the name of a table, then of a score
    differences: Sequence[Difference]


def judge(
    tables: Mapping[str, np.ndarray],
    votes: VoteTable,
    training: VoteTable,
    parts: Mapping[str, np.ndarray],
    scores: Sequence[Score],
    seed: int,
) -> dict[str, Judgement]:
    """Judge tables [N, K], by name, on items with these votes; floors are of the training items.

    Parts of the items are given by their masks, and judged by name. Where votes are known by their
    shares alone, or items are fewer than three, ceilings are not known.
    """
    bounds = _bounds(votes, training, parts, scores, seed)
    return {
        name: _judged(
            {table: probs[mask] for table, probs in tables.items()},
            votes.probs[mask],
            training.probs,
            bounds[name],
            scores,
            seed,
        )
        for name, mask in parts.items()
    }


def _bounds(
    votes: VoteTable,
    training: VoteTable,
    parts: Mapping[str, np.ndarray],
    scores: Sequence[Score],
    seed: int,
) -> dict[str, dict[str, Bounds]]:
    """Floors and ceilings of each part; nothing where ceilings are not known."""
    if votes.counts is None:
        return {name: {} for name in parts}
    known = part_bounds(training.probs, votes.counts, parts, scores, seed)
    return {name: known.get(name, {}) for name in parts}


def _judged(
    tables: Mapping[str, np.ndarray],
    people: np.ndarray,
    training: np.ndarray,
    bounds: Mapping[str, Bounds],
    scores: Sequence[Score],
    seed: int,
) -> Judgement:
    names = [score.name for score in scores]
    values = {
        name: dict(zip(names, score_values(scores, table, people).tolist(), strict=True))
        for name, table in tables.items()
    }
    asked: dict[Any, Asked] = {name: (table, scores) for name, table in tables.items()}
    asked |= _asked_of_floors(people, training, scores)
    spread = dict(zip(asked, spreads(list(asked.values()), people, seed), strict=True))
    found = {
        name: {
            score.name: _found(
                values[name][score.name],
                spread[name][score.name],
                spread.get((score.floor,), {}).get(score.name),
                bounds.get(score.name),
            )
            for score in scores
        }
        for name in tables
    }
    differences = [
        difference for score in scores for difference in _differences(score, values, spread)
    ]
    floors = score_floors(training, people, scores)
    return Judgement(len(people), scores, floors, bounds, found, differences)


def _asked_of_floors(
    people: np.ndarray, training: np.ndarray, scores: Sequence[Score]
) -> dict[tuple, Asked]:
    """The best constants as predictions, each with the scores whose floor it is."""
    return {
        (kind,): (
            np.tile(constant, (len(people), 1)),
            [score for score in scores if score.floor == kind],
        )
        for kind, constant in best_constants(training, scores).items()
    }


def _found(value: float, spread: Spread, floor: Spread | None, bounds: Bounds | None) -> Found:
    """Skill varies with the floor on the same items; the room between floor and ceiling is taken
    for known.
    """
    low, high = spread.interval(value)
    skill = bounds.skill(value) if bounds else None
    if bounds is None or bounds.floor is None or bounds.ceiling is None or skill is None:
        return Found(value, low, high, NAN, NAN, NAN)
    room = bounds.floor - bounds.ceiling
    gained = ((floor.values if floor else 0.0) - spread.values) / room
    return Found(value, low, high, skill, *Spread(gained, spread.scale).interval(skill))


def _differences(
    score: Score,
    values: Mapping[str, Mapping[str, float]],
    spread: Mapping[str, Mapping[str, Spread]],
) -> list[Difference]:
    alone = []
    for first, second in combinations(values, 2):
        value = values[first][score.name] - values[second][score.name]
        one, other = spread[first][score.name], spread[second][score.name]
        apart = Spread(one.values - other.values, one.scale)
        p = NAN if math.isnan(value) else apart.p_value(value)
        alone.append(Difference(score, first, second, value, *apart.interval(value), p, NAN))
    adjusted = holm([each.p for each in alone])
    return [replace(each, holm_p=float(p)) for each, p in zip(alone, adjusted, strict=True)]
