"""Relative improvements: how one level of a factor differs from another in percent, dataset by
dataset and on average.
"""

import math
from typing import Any

import numpy as np

from studies.analysis.collect import Record
from studies.analysis.relative_change import UNDEFINED, Change, Pairs, relative_change
from studies.analysis.statistics import summary
from studies.report.section import ChangesSpec, Section
from studies.tables.captions import notices, published_sentence
from studies.tables.cell_worth import ABOUT_BOUNDS, CellWorth, span, worth_of
from studies.tables.listing import Listing
from studies.tables.measures import factor_name, measure
from studies.tables.table_formats import NOTHING, with_sd
from studies.tables.tables import units

AVERAGE, CHANGE = "average", "change"  # as entries of published numbers call them


def changes_listing(
    spec: ChangesSpec, records: list[Record], section: Section, paired: list[str]
) -> Listing:
    """One row for every metric and group, and one for the average over groups, which there is only
    where every group has values.
    """
    records = spec.select(records)
    rows = []
    for metric in spec.columns:
        pairs = {
            group: seed_pairs(spec, records, paired, metric, group)
            for group in spec.levels[spec.groups]
        }
        for group, (level, reference) in pairs.items():
            change = relative_change([(level, reference)]) if len(level) else UNDEFINED
            worth = worth_of([r for r in records if r.factors[spec.groups] == group], metric)
            rows.append(_row(spec, section, metric, group, (level, reference), change, worth))
        if len(pairs) > 1:
            whole = all(len(level) for level, _ in pairs.values())
            nothing = np.array([]), np.array([])
            rows.append(
                _row(
                    spec,
                    section,
                    metric,
                    AVERAGE,
                    nothing,
                    relative_change(list(pairs.values())) if whole else UNDEFINED,
                )
            )
    level, reference, group = (
        section.label(spec.level),
        section.label(spec.reference),
        factor_name(spec.groups),
    )
    shown = {
        "measure": "measure",
        "group": group,
        "reference_shown": reference,
        "level_shown": level,
    }
    if any(row["bounds_shown"] for row in rows):
        shown["bounds_shown"] = "floor, ceiling"
    shown |= {
        "change_shown": f"change with {level}",
        "published_shown": f"published: {reference}, {level}, change",
    }
    if not any(row["published_shown"] for row in rows):
        shown.pop("published_shown")
    messages = [
        *notices(records, section.scale),
        f"Mean ± SD over the seeds that both have (up to {max(row['pairs'] for row in rows)}).",
    ]
    messages += [
        f"Change: that of the mean, in percent of {reference}; in brackets its 95 % bootstrap "
        "(BCa) interval, for which seeds are drawn in pairs. "
        f"Average: the mean of the changes. There is none where the mean of {reference} is not "
        "above 0, and no interval where that of a resample is not."
    ]
    if "bounds_shown" in shown:
        messages.append(ABOUT_BOUNDS)
    if "published_shown" in shown:
        messages.append(published_sentence(spec.published_entry))
    hidden = tuple(name for name in rows[0] if name.endswith("_shown"))
    return Listing(spec.name, spec.title, messages, shown, rows, hidden)


def seed_pairs(
    spec: ChangesSpec, records: list[Record], paired: list[str], metric: str, group: Any
) -> Pairs:
    """The values of the level and those of the reference, of the seeds for which both are
    finite.
    """
    of_group = [record for record in records if record.factors[spec.groups] == group]
    level, reference = (
        units(
            [record for record in of_group if record.factors[spec.rows] == wanted], metric, paired
        )
        for wanted in (spec.level, spec.reference)
    )
    common = [
        unit
        for unit, value in level.items()
        if math.isfinite(value) and math.isfinite(reference.get(unit, math.nan))
    ]
    return np.array([level[unit] for unit in common]), np.array(
        [reference[unit] for unit in common]
    )


def _row(
    spec: ChangesSpec,
    section: Section,
    metric: str,
    group: Any,
    pairs: Pairs,
    change: Change,
    worth: CellWorth | None = None,
) -> dict[str, Any]:
    result, digits = measure(metric), measure(metric).digits
    row: dict[str, Any] = {
        "measure": result.name + result.arrow,
        "group": group if group == AVERAGE else section.label(group),
        "metric": metric,
        "pairs": len(pairs[0]),
    }
    for name, values in zip(("level", "reference"), pairs, strict=True):
        mean, sd, _ = summary(values) if len(values) else (math.nan, math.nan, 0)
        row |= {
            f"{name}_mean": mean,
            f"{name}_sd": sd,
            f"{name}_shown": with_sd(mean, sd, digits) if len(values) else "",
        }
    row |= {
        "change_percent": change.percent,
        "change_low": change.low,
        "change_high": change.high,
        "change_shown": in_percent(change),
    }
    cells = spec.published_entry.get("cells", {}).get(group, {})
    published = {
        name: cells.get(level, {}).get(metric, {}).get("mean")
        for name, level in _published_rows(spec).items()
    }
    row |= {
        f"published_{name}": "" if value is None else value for name, value in published.items()
    }
    before, after, percent = (published[name] for name in ("reference", "level", "change_percent"))
    means = f"{before:g}, {after:g}" if before is not None and after is not None else ""
    row["published_shown"] = "\n".join(
        filter(None, (means, f"{percent:+g} %" if percent is not None else ""))
    )
    return row | _worth(row, worth, digits)


def _worth(row: dict[str, Any], worth: CellWorth | None, digits: int) -> dict[str, Any]:
    """Floor and ceiling, and the skill of both means: a line of its own below each."""
    if worth is None:
        unknown = ("floor", "ceiling", "level_skill", "reference_skill")
        return {**dict.fromkeys(unknown, math.nan), "bounds_shown": ""}
    ends = (worth.floor_ends, worth.ceiling_ends)
    result = {
        "floor": worth.floor,
        "ceiling": worth.ceiling,
        "bounds_shown": ", ".join(span(pair, digits) for pair in ends),
    }
    for name in ("level", "reference"):
        mean = row[f"{name}_mean"]
        lines = (row[f"{name}_shown"], worth.skill_in_words(mean))
        result |= {
            f"{name}_skill": worth.skill(mean),
            f"{name}_shown": "\n".join(filter(None, lines)),
        }
    return result


def _published_rows(spec: ChangesSpec) -> dict[str, Any]:
    return {"reference": spec.reference, "level": spec.level, "change_percent": CHANGE}


def in_percent(change: Change) -> str:
    """
    >>> in_percent(Change(-13.12, -16.0, -10.25)), in_percent(Change(7.0, math.nan,
    ...     math.nan)), in_percent(UNDEFINED)
    ('-13.1 % (-16.0 to -10.2)', '+7.0 %', '–')
    """
    if math.isnan(change.percent):
        return NOTHING
    interval = "" if math.isnan(change.low) else f" ({change.low:+.1f} to {change.high:+.1f})"
    return f"{change.percent:+.1f} %{interval}"
