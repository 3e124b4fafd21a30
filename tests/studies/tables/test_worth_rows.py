"""Ensembles, floor, ceiling and skill in study tables, in every format."""

import csv
import io
import math
import re
from pathlib import Path

import pytest
import torch

from metrics import every_score
from studies.analysis.collect import Record
from studies.report.section import TableSpec
from studies.tables.captions import table_caption
from studies.tables.cell_worth import CellWorth, worth_of
from studies.tables.ensemble_listing import ensemble_listing
from studies.tables.grid import NOTHING
from studies.tables.table_formats import table_grid, to_csv, to_html, to_markdown, to_tex
from studies.tables.table_worth import with_worth
from studies.tables.tables import Table, build_table
from tests.studies.predicted_runs import (
    COLUMNS,
    DELIVERIES,
    ITEMS,
    PEOPLE,
    SECTION,
    SEEDS,
    SPEC,
    predictions,
    records,
)


def made(runs: list[Record], spec: TableSpec = SPEC) -> Table:
    (table,) = with_worth([build_table(spec, runs, ["seed"])])
    return table


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder = tmp_path_factory.mktemp("whole")
    return made(records(folder, shared=True))


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder = tmp_path_factory.mktemp("split")
    return made(records(folder, shared=False))


def body(table: Table) -> dict[str, list[str]]:
    """The lines of the Markdown, by their first cell; of labels that come again, all of them."""
    texts = to_markdown(table, SECTION).splitlines()
    lines = [[cell.strip() for cell in text.strip("|").split("|")] for text in texts]
    rows: dict[str, list[str]] = {}
    for label, *cells in lines:
        rows.setdefault(label, []).extend(cells)
    return rows


def test_an_ensemble_stands_below_the_row_of_its_seeds(whole):
    rows = [row[0].text for row in table_grid(whole, SECTION).rows]
    ensemble = f"ensemble of {SEEDS}"
    assert rows == ["soft", ensemble, "majority", ensemble, "floor", "ceiling"]
    for delivery in DELIVERIES:
        mean = torch.stack([predictions(delivery, seed) for seed in range(SEEDS)]).mean(0)
        for metric in ("kl", "accuracy", "ece"):
            cell = whole.cells[delivery, metric]
            value = every_score(mean, PEOPLE)[metric]
            assert cell.ensemble.value == pytest.approx(value, abs=1e-6)
            assert cell.ensemble.alone == cell.summary.mean
            assert f"{value:.4f}" in " ".join(body(whole)[ensemble])
        assert whole.cells[delivery, "hessian_max"].ensemble is None
    assert "alone" not in to_markdown(whole, SECTION)


def test_skill_is_that_of_the_mean_between_floor_and_ceiling(whole):
    mean = whole.cells["SoftLabels", "kl"].summary.mean
    skill = (0.9 - mean) / (0.9 - 0.1)
    rows = body(whole)
    assert f"skill {100 * skill:.1f} %" in rows["soft"][0]
    lines = {
        (line["row"], line["column"]): line
        for line in csv.DictReader(io.StringIO(to_csv(whole, SECTION)))
    }
    line = lines["SoftLabels", "kl"]
    assert float(line["skill"]) == pytest.approx(skill)
    assert (line["floor"], line["ceiling"], line["ceiling_high"]) == ("0.9", "0.1", "0.11")
    ensemble = float(line["ensemble"])
    assert float(line["ensemble_skill"]) == pytest.approx((0.9 - ensemble) / 0.8)
    assert line["ensemble_members_least"] == line["ensemble_members_most"] == str(SEEDS)
    assert lines["SoftLabels", "ece"]["skill"] == lines["SoftLabels", "ece"]["floor"] == ""
    assert lines["SoftLabels", "hessian_max"]["ensemble"] == ""


def test_floor_and_ceiling_are_rows_with_an_interval_where_votes_are_few(whole):
    rows = body(whole)
    assert rows["floor"] == ["0.9000", "0.4000", "", ""]
    assert rows["ceiling"] == ["0.1000", "0.8000 to 0.9500", "0.0200", ""]
    # a skill that follows from such an interval is one, too
    assert re.search(r"skill -?\d+ to -?\d+ %", rows["soft"][1])
    assert "skill" not in rows["soft"][2]


def test_all_formats_have_the_rows_and_stay_rectangular(whole):
    tex = to_tex(whole, SECTION)
    assert r"floor & 0.9000 & 0.4000 &  &  \\" in tex
    assert r"{\scriptsize skill" in tex
    page = to_html(whole, SECTION)
    assert '<th scope="row" class="row">ceiling</th>' in page
    assert '<span class="skill">skill ' in page
    assert f'<th scope="row" class="row minor">ensemble of {SEEDS}</th>' in page
    assert rf"\quad ensemble of {SEEDS} & " in tex
    assert {row.count("<t") for row in re.findall(r"<tr>(.*?)</tr>", page)} == {1 + len(COLUMNS)}


def test_seeds_with_splits_of_their_own_are_compared_on_the_same_items(split):
    cell = split.cells["SoftLabels", "kl"]
    ensemble = cell.ensemble.ensemble
    assert not ensemble.whole
    assert cell.ensemble.alone == pytest.approx(ensemble.alone("kl")) != cell.summary.mean
    gain = cell.ensemble.alone - cell.ensemble.value
    expected = cell.worth.skill(cell.summary.mean) + gain / (0.9 - 0.1)
    assert cell.worth.skill(cell.ensemble.on_all_items) == pytest.approx(expected)
    least, most = ensemble.tested.min(), ensemble.tested.max()
    assert f"| ensemble of {least} to {most} |" in to_markdown(split, SECTION)
    assert f"alone {cell.ensemble.alone:.4f}" in to_markdown(split, SECTION)
    message = " ".join(table_caption(split, SECTION))
    assert "Seeds have test splits of their own" in message
    assert f"on the {len(ensemble.items)} items that two or more did" in message


def test_runs_of_earlier_versions_show_dashes_and_say_what_adds_the_rest(tmp_path):
    table = made(records(tmp_path, True, worth=None))
    rows = body(table)
    assert rows["floor"] == [NOTHING, NOTHING, "", ""]
    assert rows["ceiling"] == [NOTHING] * 3 + [""]
    message = " ".join(table_caption(table, SECTION))
    assert "not in the results of 8 of 8 runs; study evaluate adds them" in message
    assert "skill" not in rows["soft"][0]


def test_a_table_without_scores_has_neither(tmp_path):
    spec = TableSpec("h", "H", rows="delivery", columns=["hessian_max"], levels=SPEC.levels)
    table = made(records(tmp_path, True), spec)
    assert [row[0].text for row in table_grid(table, SECTION).rows] == ["soft", "majority"]
    message = " ".join(table_caption(table, SECTION))
    assert "loor" not in message
    assert "nsemble" not in message


def test_why_there_is_no_ensemble_is_said_once_for_all_cells(tmp_path):
    runs = records(tmp_path, True)
    for record in runs[1:SEEDS]:
        (record.folder / "predictions.parquet").unlink()
    table = made(runs)
    rows = [row[0].text for row in table_grid(table, SECTION).rows]
    assert rows == ["soft", "majority", f"ensemble of {SEEDS}", "floor", "ceiling"]
    (sentence,) = [s for s in table_caption(table, SECTION) if s.startswith("No ensemble")]
    assert sentence.startswith("No ensemble in 1 cell: fewer than two seeds have a predictions")


def test_the_entropy_of_each_ensemble_is_listed_once(split):
    listing = ensemble_listing([split, split], SECTION)
    assert listing is not None
    assert [row["cell"] for row in listing.rows] == ["soft", "majority"]
    for row, delivery in zip(listing.rows, DELIVERIES, strict=True):
        ensemble = split.cells[delivery, "kl"].ensemble.ensemble
        assert row["entropy"] == pytest.approx(row["expected_entropy"] + row["mutual_information"])
        assert (
            row["mutual_information_spearman"]
            == ensemble.correlations("spearman")["mutual_information"]
        )
        assert row["items"] + row["items_left_out"] <= ITEMS
        assert 2 <= row["members_mean"] <= SEEDS
    assert ensemble_listing([], SECTION) is None


def test_worth_of_a_cell_is_the_mean_over_the_runs_that_count():
    def record(value: float, **worth: float | None) -> Record:
        return Record("r", Path("r"), {}, {"kl": value}, {"worth": {"kl": worth}}, {})

    runs = [
        record(0.5, floor=1.0, ceiling=0.0, low=0.0, high=0.0, skill=0.5),
        record(0.5, floor=2.0, ceiling=None, low=None, high=None, skill=None),
        record(math.inf, floor=9.0, ceiling=9.0, low=9.0, high=9.0, skill=None),
    ]
    assert worth_of(runs, "kl") == CellWorth(floor=1.5, ceiling=0.0, low=0.0, high=0.0)
    assert worth_of(runs, "soft_nll") is None
    unknown = worth_of(runs[1:2], "kl")
    assert unknown is not None
    assert math.isnan(unknown.skill(1.0))
    assert unknown.skill_in_words(1.0) == ""


def test_no_skill_where_the_ceiling_may_be_the_floor():
    worth = CellWorth(floor=1.0, ceiling=0.9, low=0.8, high=1.1)
    assert math.isnan(worth.skill(0.95))
    assert worth.skill_in_words(0.95) == ""
