"""What each number of a test is worth: floor, ceiling and skill, as `results.json` says them under
"worth".

Floors and ceilings depend on the votes alone, so a process computes them once for all models that
are judged by the same votes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from core.errors import name_some
from datamodules import VoteDataModule
from datamodules.fingerprint import digest_of_values, digest_of_votes
from datamodules.votes.table import VoteTable
from metrics import registered
from metrics.registry import STRATA, Score
from metrics.worth import (
    LEAST_ITEMS,
    Bounds,
    ceiling_in_words,
    part_bounds,
    score_floors,
    skill_in_words,
)

Record = dict[str, dict[str, float | None]]


def with_worth(results: dict[str, Any], data: VoteDataModule) -> dict[str, Any]:
    """Results with what each of their scores is worth, and a note on what is not known of it."""
    worth, notes = worth_of(results["metrics"], data)
    told = list(dict.fromkeys([*results.get("notes", []), *notes]))
    return {**results, "worth": worth, "notes": told}


def lacks_worth(results: dict[str, Any]) -> bool:
    """Whether some registered score of these results has no worth beside it, as in results of
    earlier versions.
    """
    known, scores = results.get("worth", {}), registered(ordinal=True)
    return any(name in results["metrics"] and name not in known for name in scores)


def worth_in_words(worth: Record, name: str, value: float) -> tuple[str, str, str]:
    """Floor, ceiling and skill of a metric, for a table; dashes where there are none.

    >>> known = {"kl": {"floor": 0.4, "ceiling": 0.1, "low": 0.1, "high": 0.1, "skill": 0.5}}
    >>> worth_in_words(known, "kl", 0.25), worth_in_words(known, "val_loss", 0.25)
    (('0.4000', '0.1000', '50.0 %'), ('-', '-', '-'))
    """
    of = worth.get(name, {})
    bounds = Bounds(*(of.get(end) for end in ("floor", "ceiling", "low", "high")))
    floor = "-" if bounds.floor is None else f"{bounds.floor:.4f}"
    return floor, ceiling_in_words(bounds), skill_in_words(bounds, value)


def worth_of(metrics: Mapping[str, float], data: VoteDataModule) -> tuple[Record, list[str]]:
    """Floor, ceiling and skill of each registered score among the metrics, and of its forms by
    stratum and by other labels; and in words what is not known, and why.
    """
    assert data.corpus is not None
    scores = tuple(registered(data.ordinal).values())
    test, train = data.rows("test"), data.rows("train")
    unanimous = data.annotator_votes.unanimous[test]
    strata = {"": np.ones(len(test), bool)}
    strata |= dict(zip((f"_{name}" for name in STRATA), (unanimous, ~unanimous), strict=True))
    labels = {"": data.corpus.votes}
    labels |= {f"_{name}": votes for name, votes in data.other_labels().items()}
    worth, notes = {}, []
    for of_labels, votes in labels.items():
        masks = {
            of_labels + of_stratum: mask
            for of_stratum, mask in strata.items()
            if mask.any()
            and any(f"{score.name}{of_labels}{of_stratum}" in metrics for score in scores)
        }
        if not masks:
            continue
        known = _bounds(_Question.of(votes.take(train), votes.take(test), masks, scores))
        bounds = {
            f"{score}{ending}": found for ending in masks for score, found in known[ending].items()
        }
        worth |= {name: bounds[name].record(metrics[name]) for name in bounds if name in metrics}
        notes += _unknown(votes, masks, {name: bounds[name] for name in bounds if name in metrics})
    return dict(sorted(worth.items())), notes


@dataclass(frozen=True)
class _Question:
    """What bounds are asked for; the same question has the same answer."""

    digests: tuple[str, ...]  # of all that is not compared, and the masks' names
    scores: tuple[Score, ...]
    train: VoteTable = field(compare=False)
    test: VoteTable = field(compare=False)
    masks: dict[str, np.ndarray] = field(compare=False)

    @classmethod
    def of(
        cls,
        train: VoteTable,
        test: VoteTable,
        masks: dict[str, np.ndarray],
        scores: tuple[Score, ...],
    ) -> "_Question":
        votes = digest_of_votes(train), digest_of_votes(test)
        digests = *votes, digest_of_values(*masks.values()), *masks
        return cls(digests, scores, train, test, masks)


@lru_cache(maxsize=16)
def _bounds(asked: _Question) -> dict[str, dict[str, Bounds]]:
    """Of every score for each part of the test items: without a ceiling where there are
    probabilities without counts, or too few items.
    """
    counts, train = asked.test.counts, asked.train.probs
    known = {} if counts is None else part_bounds(train, counts, asked.masks, asked.scores)
    for name, mask in asked.masks.items():
        if name not in known:
            floors = score_floors(train, asked.test.probs[mask], asked.scores)
            known[name] = {score: Bounds(floor) for score, floor in floors.items()}
    return known


def _unknown(
    votes: VoteTable, masks: Mapping[str, np.ndarray], bounds: Mapping[str, Bounds]
) -> Iterator[str]:
    """A sentence for each reason why some of it is not known."""
    if votes.counts is None:
        yield (
            f"ceilings are not known, because {votes.source} has probabilities without counts of "
            "votes."
        )
        return
    for ending, mask in masks.items():
        if mask.sum() < LEAST_ITEMS:
            of = f" of {ending[1:]}" if ending else ""
            yield (
                f"ceilings are not known{of}, because it takes {LEAST_ITEMS} items or more and "
                f"there are {mask.sum()}."
            )
    no_room = [
        name
        for name, bound in bounds.items()
        if bound.floor is not None and bound.ceiling is not None and bound.skill(0.0) is None
    ]
    if no_room:
        yield (
            "votes are too few to tell the ceiling from the floor, so there is no skill, of "
            f"{name_some(no_room)}."
        )
