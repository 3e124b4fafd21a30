"""What a report leaves out is said where one looks: on the terminal, on the page and in the
copy.
"""

import json
import math
from pathlib import Path

import pytest

from callbacks.records.training_record import TrainingRecord, write_training
from cli import main
from studies.plan.study import Run, Study
from tests.studies.report.test_report import DELIVERIES, METRICS, finish, make_study

GRIDS = {
    "sweep": {"data.delivery": DELIVERIES, "data.votes_per_item": [5], "seed_everything": [0, 1]}
}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study of six runs, all of them finished."""
    made = make_study(tmp_path, grids=GRIDS, report={"tables": [{**METRICS, "where": {}}]})
    finish(made, tmp_path / "runs")
    return made


def said(study: Study, folder: Path, capsys: pytest.CaptureFixture) -> tuple[list[str], str, str]:
    """What the command says after where it wrote, the page, and the copy's README.md."""
    runs, copy = folder / "runs", folder / "copy"
    main(["study", "report", str(study.path), "--runs", str(runs), "--copy", str(copy)])
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert (first, second) == (
        f"report: {runs}/sweep-report/report.html",
        f"copy: {copy}/README.md",
    )
    return (
        rest,
        (runs / "sweep-report" / "report.html").read_text(),
        (copy / "README.md").read_text(),
    )


def without_result(run: Run, folder: Path) -> Path:
    (run.folder(folder / "runs") / "results.json").unlink()
    return run.folder(folder / "runs")


def test_where_nothing_is_left_out_nothing_is_said(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture
):
    lines, page, readme = said(study, tmp_path, capsys)
    assert lines == []
    assert "6 of 6 runs finished, 0 missing" in page
    assert "6 of 6 runs are finished. Versions: " in readme


def test_runs_that_are_not_finished_are_named_with_the_cause(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture
):
    absent, cut, begun, diverged, untested, old = study.runs()
    without_result(absent, tmp_path).rmdir()
    (cut.folder(tmp_path / "runs") / "results.json").write_text('{"metrics": {')
    (without_result(begun, tmp_path) / "fingerprint.json").write_text("{}")
    write_training(
        without_result(diverged, tmp_path),
        TrainingRecord("diverged", 1, 2, 40, reason="its loss was nan in epoch 0"),
    )
    write_training(without_result(untested, tmp_path), TrainingRecord("epochs", 2, 2, 80))
    path = old.folder(tmp_path / "runs") / "results.json"
    # which an earlier version would write
    path.write_text(json.dumps({"metrics": json.loads(path.read_text())["metrics"]}))
    lines, page, readme = said(study, tmp_path, capsys)
    shown = (
        f"{absent.name} (no results), {cut.name} (damaged results.json), {begun.name} "
        "(training not ended) and 3 more"
    )
    assert lines == [f"0 of 6 runs are finished; missing: {shown}"]
    causes = (
        "no results",
        "damaged results.json",
        "training not ended",
        "diverged",
        "no results",
        "results.json is not of a finished run",
    )
    listed = "\n".join(
        f"{run.name}: {cause}" for run, cause in zip(study.runs(), causes, strict=True)
    )
    assert f"<summary>Missing runs (6)</summary><pre>{listed}</pre>" in page
    assert f"0 of 6 runs are finished; missing: {shown}. " in readme


def test_runs_without_a_finite_number_are_named_too(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture
):
    """Whether it is null, NaN as earlier versions wrote it, infinite, or not there at all."""
    first, second, third, fourth, *_ = study.runs()
    changes = ({"soft_nll": None}, {"soft_nll": math.nan}, {"soft_nll": math.inf}, {})
    for run, change in zip((first, second, third, fourth), changes, strict=True):
        path = run.folder(tmp_path / "runs") / "results.json"
        results = json.loads(path.read_text())
        results["metrics"] = {"accuracy": 0.5} | change
        path.write_text(json.dumps(results))
    lines, page, readme = said(study, tmp_path, capsys)
    names = f"{first.name}, {second.name}, {third.name} and 1 more"
    line = (
        "soft_nll is absent or not finite in 4 of 6 runs, which are left out where it is "
        f"shown: {names}"
    )
    assert lines == [line]
    assert f"<p>{line}.</p>" in page
    assert f"6 of 6 runs are finished. {line}. " in readme
