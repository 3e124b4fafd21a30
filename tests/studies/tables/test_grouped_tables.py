"""Tables whose rows are two factors: tests, bold and published values stay within a group."""

import csv
import io
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from studies.analysis.collect import Record
from studies.plan.published_numbers import published
from studies.report.section import Section, TableSpec
from studies.tables.captions import table_caption
from studies.tables.table_formats import to_csv, to_html, to_markdown, to_tex
from studies.tables.tables import Table, build_table

DATASETS, DELIVERIES = ["ChaosNLI", "POPQUORN"], ["MajorityVote", "SoftLabels", "Multipass"]
SECTION = Section([], [], labels={"ChaosNLI": "Chaos NLI", "SoftLabels": "soft"})
SPEC = TableSpec(
    "t3",
    "Soft & hard",
    rows="delivery",
    groups="dataset",
    columns=["accuracy", "kl"],
    reference="MajorityVote",
    test="t",
    family="holm",
    published="epistemic.table3",
    published_entry=published("tables")["epistemic.table3"],
    levels={"dataset": DATASETS, "delivery": DELIVERIES, "seed": list(range(6))},
    planned_units=6,
)


def values(dataset: str, delivery: str, metric: str) -> np.ndarray:
    """POPQUORN is better in everything than ChaosNLI, so that a comparison across groups would
    show.
    """
    place = [DATASETS.index(dataset), DELIVERIES.index(delivery), len(metric)]
    result = (
        0.4 + 0.3 * place[0] + 0.02 * place[1] + np.random.default_rng(place).normal(0, 0.02, 6)
    )
    return result if metric == "accuracy" else 1 - result


@pytest.fixture(scope="module")
def table() -> Table:
    records = [
        Record(
            "r",
            Path("r"),
            {"dataset": dataset, "delivery": delivery, "seed": seed},
            {
                metric: float(values(dataset, delivery, metric)[seed])
                for metric in ("accuracy", "kl")
            },
            {},
            {},
        )
        for dataset in DATASETS
        for delivery in DELIVERIES
        for seed in range(6)
    ]
    return build_table(SPEC, records, ["seed"])


def test_every_row_is_tested_within_its_own_group(table):
    tests = []
    for ((dataset, delivery), metric), cell in table.cells.items():
        result = values(dataset, delivery, metric)
        assert cell.summary.mean == pytest.approx(result.mean())
        if delivery == "MajorityVote":
            assert cell.test is None
        else:
            tests.append(stats.ttest_rel(result, values(dataset, "MajorityVote", metric)).pvalue)
            assert cell.test.p == pytest.approx(tests[-1])
    assert len(tests) == 8
    holm = [cell.holm_p for cell in table.cells.values() if cell.test]
    assert holm == pytest.approx(multipletests(tests, method="holm")[1])


def test_each_group_has_its_own_best(table):
    for metric, best in (("accuracy", max), ("kl", min)):
        for dataset in DATASETS:
            means = {delivery: values(dataset, delivery, metric).mean() for delivery in DELIVERIES}
            bold = [
                delivery for delivery in DELIVERIES if table.cells[(dataset, delivery), metric].best
            ]
            assert bold == [best(means, key=lambda delivery: means[delivery])]


def test_published_values_are_those_of_the_group(table):
    assert table.cells[("ChaosNLI", "SoftLabels"), "kl"].published == {
        "mean": 0.319,
        "sd": 0.012,
        "p": 4.7e-07,
    }
    assert table.cells[("POPQUORN", "MajorityVote"), "accuracy"].published == {
        "mean": 0.52,
        "sd": 0.0125,
    }
    assert table.cells[("POPQUORN", "Multipass"), "kl"].published == {}


def test_all_formats_name_group_and_row(table):
    lines = list(csv.DictReader(io.StringIO(to_csv(table, SECTION))))
    assert [(line["group"], line["row"], line["column"]) for line in lines[:2]] == [
        ("ChaosNLI", "MajorityVote", "accuracy"),
        ("ChaosNLI", "MajorityVote", "kl"),
    ]
    assert len(lines) == 12
    body = [line for line in to_markdown(table, SECTION).splitlines() if line.startswith("|")]
    assert body[0].startswith("| dataset | delivery |")
    assert {line.count("|") for line in body} == {5}
    assert [line.split(" | ")[0] for line in body[2:]] == [
        "| Chaos NLI",
        *["| "] * 4,
        "| POPQUORN",
        *["| "] * 4,
    ]
    rows = ["MajorityVote", "soft", "Multipass", "floor", "ceiling"]
    assert [line.split(" | ")[1] for line in body[2:7]] == rows
    tex = to_tex(table, SECTION)
    assert r"\begin{tabular}{llrr}" in tex
    assert all(
        len(re.findall(r"(?<!\\)&", line)) == 3 for line in tex.splitlines() if line.endswith(r"\\")
    )
    page = to_html(table, SECTION)
    assert all(row.count("<t") == 4 for row in re.findall(r"<tr>(.*?)</tr>", page))


def test_the_caption_says_what_is_compared(table):
    message = " ".join(table_caption(table, SECTION))
    assert "the best mean of each column within each dataset is bold" in message
    assert "of each row against MajorityVote of the same dataset, paired by seed" in message
    assert "over all 8 tests" in message


def test_a_group_without_runs_is_empty_and_not_tested(table):
    half = build_table(
        SPEC,
        [record for record in table.records if record.factors["dataset"] == "ChaosNLI"],
        ["seed"],
    )
    assert half.cells[("POPQUORN", "SoftLabels"), "kl"].summary is None
    assert math.isnan(half.cells[("POPQUORN", "SoftLabels"), "kl"].holm_p)
    assert (
        half.cells[("ChaosNLI", "SoftLabels"), "kl"].test
        == table.cells[("ChaosNLI", "SoftLabels"), "kl"].test
    )
