"""Relative improvements as a part of a report: the paper's own arithmetic, done on runs, and what
is left open until every dataset has runs.
"""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies.analysis.collect import Record
from studies.plan.published_numbers import published
from studies.report.section import ChangesSpec, Section
from studies.tables.changes import changes_listing
from studies.tables.listing import listing_csv, listing_markdown
from studies.tables.table_formats import NOTHING

DATASETS = ["ChaosNLI", "CIFAR10HHard", "POPQUORN"]
PUBLISHED = published("tables")["epistemic.table4"]
SPEC = ChangesSpec(
    "t4",
    "Improvements",
    rows="delivery",
    groups="dataset",
    columns=["kl", "entropy_pearson", "entropy_spearman"],
    level="SoftLabels",
    reference="MajorityVote",
    published="epistemic.table4",
    published_entry=PUBLISHED,
    where={"delivery": ["MajorityVote", "SoftLabels"]},
    levels={"dataset": DATASETS, "delivery": ["MajorityVote", "SoftLabels", "Multipass"]},
)
SECTION = Section([], [], labels={"MajorityVote": "hard", "SoftLabels": "soft"})


def run(dataset: str, delivery: str, seed: int, **metrics: float) -> Record:
    return Record(
        "r", Path("r"), {"dataset": dataset, "delivery": delivery, "seed": seed}, metrics, {}, {}
    )


def as_published() -> list[Record]:
    """Four seeds around the means that the paper gives; other deliveries must not count."""
    records = []
    for dataset in DATASETS:
        for delivery in ("MajorityVote", "SoftLabels"):
            means = {
                metric: cell["mean"]
                for metric, cell in PUBLISHED["cells"][dataset][delivery].items()
            }
            records += [
                run(
                    dataset,
                    delivery,
                    seed,
                    **{m: mean + 0.001 * (seed - 1.5) for m, mean in means.items()},
                )
                for seed in range(4)
            ]
        records.append(run(dataset, "Multipass", 0, kl=99.0, entropy_pearson=99.0))
    return records


def test_the_papers_own_means_give_the_changes_that_its_note_states():
    listing = changes_listing(SPEC, as_published(), SECTION, ["seed"])
    result = {(row["metric"], row["group"]): row for row in listing.rows}
    wanted = {
        "kl": {"ChaosNLI": -13.1, "CIFAR10HHard": -31.9, "POPQUORN": -16.0, "average": -20.3},
        "entropy_pearson": {
            "ChaosNLI": 118.5,
            "CIFAR10HHard": 39.7,
            "POPQUORN": 23.3,
            "average": 60.5,
        },
    }
    for metric, by_group in wanted.items():
        for group, percent in by_group.items():
            row = result[metric, group]
            assert row["change_percent"] == pytest.approx(percent, abs=0.051)
            assert row["change_low"] < row["change_percent"] < row["change_high"]
            assert str(percent).lstrip("-") in PUBLISHED["note"]
    assert result["kl", "average"]["published_change_percent"] == -32
    assert result["entropy_pearson", "ChaosNLI"]["published_change_percent"] == 119
    # these runs have none
    assert math.isnan(result["entropy_spearman", "average"]["change_percent"])


def test_readers_see_means_changes_and_published_values():
    text = listing_markdown(changes_listing(SPEC, as_published(), SECTION, ["seed"]))
    (line,) = [
        line
        for line in text.splitlines()
        if line.startswith("| Entropy correlation (Pearson) ↑ | ChaosNLI")
    ]
    assert "| 0.1300 ± 0.0013 | 0.2840 ± 0.0013 | +118.5 % (+" in line
    assert line.endswith("| 0.13, 0.284<br>+119 % |")
    assert "in percent of hard" in text
    assert "its 32 % is the change on CIFAR10HHard alone" in text


def test_only_seeds_that_both_have_count():
    spec = replace(
        SPEC, columns=["kl"], levels={**SPEC.levels, "dataset": ["ChaosNLI"]}, published_entry={}
    )
    records = [
        run("ChaosNLI", "MajorityVote", seed, kl=value)
        for seed, value in enumerate((1.0, 2.0, 5.0))
    ]
    records += [
        run("ChaosNLI", "SoftLabels", seed, kl=value)
        for seed, value in ((0, 0.5), (1, 0.5), (2, math.nan), (3, 7.0))
    ]
    (row,) = changes_listing(spec, records, SECTION, ["seed"]).rows  # one group has no average
    assert (row["pairs"], row["reference_mean"], row["level_mean"]) == (2, 1.5, 0.5)
    assert row["change_percent"] == pytest.approx(-200 / 3)
    assert "published_shown" not in changes_listing(spec, records, SECTION, ["seed"]).shown


def test_the_average_waits_for_every_dataset():
    some = [record for record in as_published() if record.factors["dataset"] != "POPQUORN"]
    rows = {
        (row["metric"], row["group"]): row
        for row in changes_listing(SPEC, some, SECTION, ["seed"]).rows
    }
    assert rows["kl", "ChaosNLI"]["change_shown"].startswith("-13.1 %")
    assert (
        rows["kl", "POPQUORN"]["change_shown"] == rows["kl", "average"]["change_shown"] == NOTHING
    )
    assert np.isnan(rows["kl", "average"]["change_percent"])
    header = listing_csv(changes_listing(SPEC, [], SECTION, ["seed"])).splitlines()[0]
    assert header.startswith("measure,group,metric,pairs,level_mean,level_sd,reference_mean")
    assert "shown" not in header


def test_both_means_have_a_skill_where_runs_say_what_they_are_worth():
    worth = {"kl": {"floor": 2.5, "ceiling": 0.5, "low": 0.5, "high": 0.5, "skill": None}}
    spec = replace(
        SPEC, columns=["kl"], levels={**SPEC.levels, "dataset": ["ChaosNLI"]}, published_entry={}
    )
    records = [
        replace(run("ChaosNLI", delivery, seed, kl=value), results={"worth": worth})
        for delivery, value in (("MajorityVote", 2.0), ("SoftLabels", 1.0))
        for seed in range(3)
    ]
    listing = changes_listing(spec, records, SECTION, ["seed"])
    (row,) = listing.rows
    assert (row["reference_skill"], row["level_skill"]) == (0.25, 0.75)
    assert row["level_shown"].endswith("\nskill 75.0 %")
    assert row["bounds_shown"] == "2.5000, 0.5000"
    assert listing.shown["bounds_shown"] == "floor, ceiling"
    (row,) = changes_listing(
        spec, [replace(r, results={}) for r in records], SECTION, ["seed"]
    ).rows
    assert row["bounds_shown"] == ""
    assert "skill" not in row["level_shown"]
