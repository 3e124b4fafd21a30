"""A report's figures show words as they were typed, and one that cannot be drawn costs neither the
others nor the tables.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from callbacks.prediction_table import prediction_table
from core.errors import InputError
from studies.figures.kinds.history import HistoryFigure
from studies.plan.study import Study
from studies.report.report import Report, build_report, write_files
from tests.finished import FINISHED
from tests.studies.report.report_checks import check_legible

BROKEN = r"$\frac{$"
LABELS = {
    "SoftLabels": BROKEN,
    "MajorityVote": "$x^2$ and a label that goes on and on, far beyond what anybody would read "
    "in the legend of a figure",
}
NOTE = "figures/odd.png is not drawn: there was <no> ink (OSError)."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of four finished runs with predictions and histories, whose words are no formulas."""
    folder = tmp_path_factory.mktemp("drawing")
    rows = {"rows": "data.delivery", "where": {"data.batch_size": 32}}
    figures = [
        {
            "name": "points",
            "kind": "points",
            "metric": ["soft_nll", "$odd$"],
            "title": f"Points {BROKEN} of the price",
            **rows,
        },
        {
            "name": "lines",
            "kind": "lines",
            "metric": "$odd$",
            "x": "data.batch_size",
            "lines": "data.delivery",
            "title": f"{BROKEN} " * 500,
        },
        {"name": "curves", "kind": "curves", "title": "Reliability at $32", **rows},
        {
            "name": "history",
            "kind": "history",
            "metric": "val/soft_nll",
            "lines": "data.delivery",
            "panels": "data.batch_size",
        },
    ]
    grid = {"data.delivery": list(LABELS), "data.batch_size": [32, 64], "seed_everything": [0]}
    tables = [{"name": "numbers", **rows, "columns": ["soft_nll"]}]
    report = {"labels": LABELS, "tables": tables, "figures": figures}
    content = {
        "name": "odd",
        "title": BROKEN,
        "configs": ["configs/digits.yaml"],
        "grids": {"all": grid},
        "report": report,
    }
    (folder / "odd.yaml").write_text(yaml.safe_dump(content))
    annotator_probs = torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(3, 0.4), 50))
    for run in Study.load(folder / "odd.yaml").runs():
        place = run.folder(folder / "runs")
        place.mkdir(parents=True)
        results = {
            **FINISHED,
            "run": run.name,
            "dataset": "Digits",
            "metrics": {"soft_nll": 0.5, "$odd$": 2.0},
            "notes": [NOTE, "one"],
            "versions": {},
        }
        (place / "results.json").write_text(json.dumps(results))
        (place / "history.json").write_text(
            json.dumps([{"epoch": epoch, "val/soft_nll": 1.0 - 0.1 * epoch} for epoch in range(3)])
        )
        table = prediction_table(
            torch.full_like(annotator_probs, 1 / 3),
            annotator_probs,
            torch.arange(50),
            {"test": np.arange(50)},
        )
        pq.write_table(table, place / "predictions.parquet")
    return folder


def built(folder: Path) -> Report:
    return build_report(Study.load(folder / "odd.yaml"), folder / "runs")


def test_words_that_look_like_formulas_are_shown_as_typed(folder: Path):
    report = built(folder)
    figures = {drawn.spec.name: drawn.figure for drawn in report.figures}
    for figure in figures.values():
        check_legible(figure)
    assert figures["points"]
    assert figures["points"].get_suptitle() == r"Points \$\frac{\$ of the price"
    first, second = (label.get_text() for label in figures["points"].axes[0].get_yticklabels())
    assert first == r"\$\frac{\$"
    assert second.startswith(r"\$x^2\$ and a label")
    assert len(second) < 90
    assert "not drawn" not in str([drawn.caption for drawn in report.figures]).lower()


def test_a_figure_that_fails_says_so_in_its_place_and_costs_nothing_else(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def no_ink(*args):
        raise RuntimeError("there was\n<no> ink")

    monkeypatch.setattr(HistoryFigure, "draw", no_ink)
    report = built(folder)
    page = write_files(report, tmp_path).read_text()
    assert report.figures[3].caption[-1] == "Not drawn: there was <no> ink (RuntimeError)."
    assert "Not drawn: there was &lt;no&gt; ink (RuntimeError)." in page
    assert page.count("<img ") == 3
    assert sorted(path.name for path in (tmp_path / "figures").glob("*.png")) == [
        "curves.png",
        "lines.png",
        "points.png",
    ]
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {
        "numbers.md",
        "numbers.csv",
        "numbers.tex",
    }


def test_a_mistake_in_the_data_of_a_figure_is_one_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    path = next((folder / "runs").glob("*/history.json"))
    content = path.read_text()
    path.write_text("[")
    with pytest.raises(InputError, match=r"history\.json is not a list of epochs"):
        built(folder)
    path.write_text(content)


def test_the_report_has_the_notes_of_runs(folder: Path, tmp_path: Path):
    run = next((folder / "runs").glob("*/results.json"))
    content = run.read_text()
    run.write_text(json.dumps({**json.loads(content), "notes": {"no": "list"}}))
    page = write_files(built(folder), tmp_path).read_text()
    run.write_text(content)
    assert (
        "3 runs: figures/odd.png is not drawn: there was &lt;no&gt; ink (OSError).\n3 runs: "
        "one</pre>" in page
    )
