"""The options that a selection chose, one row for each combination, with the paper's choice below
where it published one.
"""

import math
from typing import Any

from studies.plan.published_numbers import published
from studies.plan.second_stage import Choice, SecondStage
from studies.plan.selection import Selection
from studies.plan.study import Study
from studies.report.section import Section
from studies.schema.calibrate_factor import split_off
from studies.tables.listing import Listing
from studies.tables.measures import factor_name, measure
from studies.tables.table_formats import NOTHING


def selection_listings(
    study: Study, stage: SecondStage, section: Section, notices: list[str]
) -> list[Listing]:
    """One table for each selection of the study."""
    return [
        _listing(study, selection, stage, section, notices)
        for selection in study.selections.values()
    ]


def _listing(
    study: Study, selection: Selection, stage: SecondStage, section: Section, notices: list[str]
) -> Listing:
    levels, choices = split_off(study.levels(selection.grid))[0], stage.choices[selection.name]
    options = [
        f
        for f in levels
        if len(levels[f]) > 1
        and f not in (*selection.for_each, *selection.then)
        and len(selection.where.get(f, "??")) > 1
    ]
    rows = []
    for choice in choices:
        chosen = choice.winner.factors[selection.grid] if choice.winner else {}
        of = {factor: section.label(level) for factor, level in choice.levels.items()}
        ours = {
            option: plain(section.label(chosen[option]), chosen[option]) if chosen else NOTHING
            for option in options
        }
        tried = (
            f"{choice.cells - len(choice.missing)} of {choice.cells}"
            + f", {len(choice.diverged)} diverged" * bool(choice.diverged)
        )
        run = choice.winner.name if choice.winner else ""
        rows.append(
            {**of, "source": "ours", **ours, selection.by: choice.loss, "tried": tried, "run": run}
        )
        if paper := paper_choice(selection, choice, options):
            theirs = {
                option: plain(section.label(paper[option]), paper[option])
                if option in paper
                else NOTHING
                for option in options
            }
            rows.append(
                {
                    **of,
                    "source": "paper",
                    **theirs,
                    selection.by: math.nan,
                    "tried": NOTHING,
                    "run": "",
                }
            )
    shown = {factor: factor_name(factor) for factor in selection.for_each}
    shown |= ({"source": "choice"} if selection.published else {}) | {
        option: factor_name(option) for option in options
    }
    shown |= {selection.by: measure(selection.by).name.split(" of ")[0], "tried": "cells tried"}
    caption = [
        *notices,
        f"Of each combination, the cell of {selection.grid} with the least {selection.by}; of "
        "equal ones the first in the study's order.",
    ]
    if waiting := stage.waiting(selection.name):
        caption.append(f"{waiting}.")
    if selection.published:
        facts = [
            fact
            for name, fact in published("facts").items()
            if name.startswith(f"{selection.published}_")
        ]
        caption.append(f"Choices of the paper: {facts[0]['source']}, {facts[0]['where']}.")
    return Listing(
        f"{selection.name}-options",
        f"Options chosen by validation: {selection.name}",
        caption,
        shown,
        rows,
    )


def paper_choice(selection: Selection, choice: Choice, options: list[str]) -> dict[str, Any]:
    """The published values by our factors: `epochs` is our factor trainer.max_epochs, and so on,
    because the last word of its name ends so.
    """
    name = "_".join([selection.published, *(str(level) for level in choice.levels.values())])
    values = published("facts").get(name, {}).get("values", {}) if selection.published else {}
    return {
        option: value
        for key, value in values.items()
        for option in options
        if option.rsplit(".", 1)[-1].endswith(key)
    }


def plain(label: str, level: Any) -> str:
    """An option in few characters.

    >>> plain("1e-05", 1e-05), plain("0.001", 0.001), plain("plateau", "Plateau"), plain("20", 20)
    ('0.00001', '0.001', 'plateau', '20')
    """
    return (
        f"{level:.10f}".rstrip("0").rstrip(".")
        if isinstance(level, float) and label == str(level)
        else label
    )
