"""What a study's datasets are like: how many items, classes and votes, and how much people
disagree. Computed from the data, not typed in.
"""

import math
from typing import Any

import numpy as np
from torch import Tensor

from core.errors import InputError
from datamodules import VoteDataModule
from studies.analysis.collect import Record
from studies.analysis.data_of_runs import DataOfRuns
from studies.analysis.statistics import summary
from studies.report.section import DatasetsSpec, Section
from studies.tables.captions import notices, published_sentence
from studies.tables.listing import Listing
from studies.tables.measures import factor_name
from studies.tables.table_formats import NOTHING, with_sd

NUMBERS = (
    "classes",
    "items",
    "votes_per_item",
    "fewest_votes",
    "most_votes",
    "normalized_entropy",
    "normalized_entropy_sd",
)
ENTROPY = (
    "Entropy is that of each item's votes, divided by that of an even spread over all "
    "classes; mean ± SD over items."
)


def dataset_listing(
    spec: DatasetsSpec, records: list[Record], section: Section, data: DataOfRuns
) -> Listing:
    """One row per level, from the data of its first finished run.

    Where there is none, or its files are not here, the row says nothing and the caption why.
    """
    records = spec.select(records)
    rows, absent, further = [], [], {}
    for level in spec.levels[spec.rows]:
        of_level = [record for record in records if record.factors[spec.rows] == level]
        result: dict[str, Any] = {"kind": NOTHING, **dict.fromkeys(NUMBERS, math.nan)}
        try:
            if of_level:
                result = dataset_numbers(data.of(of_level[0].config))
                further[level] = data.of(of_level[0].config).statistics()
            else:
                absent.append(f"{section.label(level)}: none of its runs is finished.")
        except InputError as error:
            absent.append(f"{section.label(level)}: {error}")
        rows.append(
            _row(section.label(level), result, spec.published_entry.get("cells", {}).get(level, {}))
        )
    names = list(dict.fromkeys(name for statistics in further.values() for name in statistics))
    for level, row in zip(spec.levels[spec.rows], rows, strict=True):
        row |= _further(
            names, further.get(level, {}), spec.published_entry.get("cells", {}).get(level, {})
        )
    messages = [*notices(records, section.scale), ENTROPY, *absent]
    if any(
        value != "" for row in rows for name, value in row.items() if name.startswith("published_")
    ):
        messages.append(published_sentence(spec.published_entry))
    shown = {
        "dataset": factor_name(spec.rows),
        "kind": "items are",
        "classes_shown": "classes",
        "items_shown": "items",
    }
    shown |= {
        "votes_per_item_shown": "votes per item",
        "normalized_entropy_shown": "normalised entropy",
    }
    shown |= {f"{name}_shown": name for name in names}
    return Listing(
        spec.name,
        spec.title,
        messages,
        shown,
        rows,
        hidden=tuple(name for name in shown if name.endswith("_shown")),
    )


def dataset_numbers(data: VoteDataModule) -> dict[str, Any]:
    """Of all items, whatever part of the data they fall into."""
    assert data.corpus is not None
    votes = data.corpus.votes
    entropy = summary(votes.normalized_entropy)
    of_item = np.full(1, math.nan) if votes.counts is None else votes.counts.sum(1)
    fewest, most = (
        (math.nan, math.nan) if votes.counts is None else (int(of_item.min()), int(of_item.max()))
    )
    numbers = (
        votes.num_classes,
        len(votes),
        float(of_item.mean()),
        fewest,
        most,
        entropy.mean,
        entropy.sd,
    )
    return {"kind": _kind(data), **dict(zip(NUMBERS, numbers, strict=True))}


def _kind(data: VoteDataModule) -> str:
    try:
        return "images" if isinstance(data.original(np.arange(1)), Tensor) else "texts"
    except InputError:  # a dataset that has nothing to show to people
        return "numbers"


def _row(
    label: str, result: dict[str, Any], published: dict[str, dict[str, float]]
) -> dict[str, Any]:
    entropy, sd = result["normalized_entropy"], result["normalized_entropy_sd"]
    texts = {
        "classes": _number(result["classes"]),
        "items": _number(result["items"]),
        "votes_per_item": votes_in_words(
            result["votes_per_item"], result["fewest_votes"], result["most_votes"]
        ),
        "normalized_entropy": NOTHING if math.isnan(entropy) else with_sd(entropy, sd, 3),
    }
    theirs: dict[str, Any] = {}
    for name, text in texts.items():
        cell = published.get(name, {})
        theirs |= {f"published_{name}": cell.get("mean", "")} | (
            {f"published_{name}_sd": cell.get("sd", "")} if name == "normalized_entropy" else {}
        )
        if cell:
            texts[name] = (
                f"{text}\npublished "
                f"{with_sd(cell['mean'], cell['sd'], 2) if 'sd' in cell else _number(cell['mean'])}"
            )
    return {
        "dataset": label,
        **{f"{name}_shown": text for name, text in texts.items()},
        **result,
        **theirs,
    }


def _further(
    names: list[str], result: dict[str, float], published: dict[str, dict[str, float]]
) -> dict[str, Any]:
    """What a dataset says of itself, beside what was published of it."""
    row: dict[str, Any] = {}
    for name in names:
        digits = 2 if name.endswith("(%)") else 3
        theirs = published.get(name, {}).get("mean")
        value = result.get(name, math.nan)
        shown = NOTHING if math.isnan(value) else f"{value:.{digits}f}"
        row |= {
            f"{name}_shown": shown + ("" if theirs is None else f"\npublished {theirs:.{digits}f}")
        }
        row |= {name: value, f"published_{name}": "" if theirs is None else theirs}
    return row


def votes_in_words(mean: float, fewest: float, most: float) -> str:
    """
    >>> votes_in_words(100.0, 100, 100), votes_in_words(6.735, 5, 9), votes_in_words(math.nan,
    ...     math.nan, math.nan)
    ('100', '6.7 (5 to 9)', '–')
    """
    return (
        _number(mean)
        if fewest == most or math.isnan(mean)
        else f"{_number(mean)} ({fewest} to {most})"
    )


def _number(value: float) -> str:
    return NOTHING if math.isnan(value) else f"{value:,.{0 if value == int(value) else 1}f}"
