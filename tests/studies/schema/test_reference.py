"""The reference page is what the code makes of its descriptions, and its examples are read as they
stand; a new kind of figure is one file.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import studies.figures.kinds as kinds
from core.errors import InputError
from studies.analysis.claims.claim_spec import ClaimSpec
from studies.figures.kinds import figure_kinds
from studies.plan.selection import Selection
from studies.plan.study import Study
from studies.report.planned_runs import check_planned_report
from studies.report.report import write_report
from studies.schema.reference import PAGE, PARTS, reference
from tests.docs.pages import ROOT, blocks, sections
from tests.finished import FINISHED


def examples() -> dict[str, Any]:
    """A study made of all examples together."""
    study = yaml.safe_load(Study.example)
    study["selections"] = {"best": yaml.safe_load(Selection.example)}
    study["options"]["trainer.callbacks"] = [{"class_path": "DataCartography"}]
    report = {name: [yaml.safe_load(part.example)] for name, part in PARTS.items()}
    report["tables"][0]["name"] = "table"
    report["figures"] = [yaml.safe_load(kind.example) for kind in figure_kinds().values()]
    return {**study, "report": {**report, "claims": [yaml.safe_load(ClaimSpec.example)]}}


def test_the_page_is_what_the_code_makes():
    message = "python -m studies.schema.reference writes it anew"
    assert PAGE.read_text() == reference(), message


def test_examples_are_read_as_they_stand(tmp_path: Path):
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(examples(), sort_keys=False))
    study = Study.load(tmp_path / "all.yaml")
    check_planned_report(study, study.runs(), tmp_path)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The kind of docs/adding.md, as one more file beside the others."""
    page = sections((ROOT / "docs" / "adding.md").read_text())["A figure kind"]
    (source,) = (block.text for block in blocks(page) if block.title == "box.py")
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "box.py").write_text(source)
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(folder)])
    figure_kinds.cache_clear()
    yield
    figure_kinds.cache_clear()


def study_with(folder: Path, figure: dict[str, Any]) -> Study:
    content = yaml.safe_load(Study.example)
    figure = {"name": "b", "kind": "box", "rows": "data.delivery", **figure}
    figure["where"] = {"data.votes_per_item": 5}
    (folder / "box.yaml").write_text(yaml.safe_dump({**content, "report": {"figures": [figure]}}))
    return Study.load(folder / "box.yaml")


@pytest.mark.usefixtures("box")
def test_a_new_kind_is_one_file(tmp_path: Path):
    assert "box" in figure_kinds()
    page = reference()
    assert "### kind: box\n\nEvery seed's score as a box plot" in page
    assert "| whiskers | a number of at least 0 and below 10 | length" in page
    study = study_with(tmp_path, {"metric": "soft_nll"})
    for place, run in enumerate(study.runs()):
        folder = run.folder(tmp_path / "runs")
        folder.mkdir(parents=True)
        results = {**FINISHED, "metrics": {"soft_nll": 1.0 + place}}
        (folder / "results.json").write_text(json.dumps(results))
    out = tmp_path / "out"
    html = write_report(study, tmp_path / "runs", out).read_text()
    assert "Boxes: median and quartiles of 3 seeds." in html
    assert (out / "figures" / "b.png").is_file()
    rows = (out / "tables" / "b-quartiles.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["SoftLabels", "Multipass"]


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ({"metric": "soft_nll", "whisker": 2}, r"whisker is not an option; .*mean whiskers\?"),
        ({"metric": "soft_nll", "whiskers": 11}, r"whiskers is 11; it must be a number of at"),
        (
            {"metric": "soft_nll", "x": "data.delivery"},
            r"x does not belong in a figure of kind box",
        ),
        ({}, r"metric is missing from a figure of kind box"),
        ({"metric": "hessian_max"}, r"metric is hessian_max, which the callback HessianSpectrum"),
    ],
)
def test_mistakes_in_its_options_are_told_at_once(
    figure: dict[str, Any], message: str, tmp_path: Path
):
    study = study_with(tmp_path, figure)
    with pytest.raises(InputError, match=message):
        check_planned_report(study, study.runs(), tmp_path)


def test_a_kind_that_is_no_class_of_a_figure_is_refused(tmp_path: Path):
    for name in ("os.system", "no.such.Kind", "..", "pathlib.Path"):
        study = study_with(tmp_path, {"kind": name, "metric": "soft_nll"})
        with pytest.raises(InputError, match=r"report\.figures\[0\]\.kind is .*; it must be one"):
            check_planned_report(study, study.runs(), tmp_path)
