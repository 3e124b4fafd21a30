"""The commands that are printed and that a copy's README.md tells can be typed as they are."""

import re
import shlex
from pathlib import Path

import pytest

from cli import main
from studies.plan.study import Study
from studies.report.copy import write_copy
from studies.report.report import build_report
from studies.study_command import study_command
from tests.studies.report.test_report import METRICS, finish, make_study


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study of one run in a folder with a blank in its name, where one is."""
    monkeypatch.chdir(tmp_path)
    Path("my studies").mkdir()
    grids = {
        "sweep": {
            "data.delivery": ["SoftLabels"],
            "data.votes_per_item": [5],
            "seed_everything": [0],
        }
    }
    return make_study(
        Path("my studies"),
        grids=grids,
        report={"tables": [{**METRICS, "where": {}, "reference": "SoftLabels"}]},
    )


@pytest.mark.parametrize(
    ("runs", "named"),
    [("runs", ""), ("my runs", " --runs 'my runs'"), ("../b/c", " --runs ../b/c")],
)
def test_a_plan_tells_the_command_that_starts_it(
    study: Study, runs: str, named: str, capsys: pytest.CaptureFixture
):
    main(["study", "plan", str(study.path), "--runs", runs])
    result = re.findall(r"^Start them with: (.*)$", capsys.readouterr().out, re.M)
    assert result == [f"python cli.py study run 'my studies/sweep.yaml'{named}"]
    words = shlex.split(result[0])
    assert words[:4] == ["python", "cli.py", "study", "run"]
    study_command(["plan", *words[4:]])  # it finds the same study and the same runs
    assert result == re.findall(r"^Start them with: (.*)$", capsys.readouterr().out, re.M)


@pytest.mark.parametrize(
    ("runs", "named"),
    [
        ("runs", ""),
        ("{here}/runs", ""),
        ("my runs", " --runs 'my runs'"),
        ("../b/c", " --runs ../b/c"),
        ("{here}/my/own", " --runs RUNS"),
    ],
)
def test_a_copy_says_how_it_was_produced_and_nothing_of_the_machine(
    study: Study, runs: str, named: str
):
    place = Path(runs.format(here=Path.cwd()))
    finish(study, place)
    readme = write_copy(build_report(study, place), Path("my copy")).read_text()
    assert f"    python cli.py study run 'my studies/sweep.yaml'{named}\n" in readme
    assert (
        f"    python cli.py study report 'my studies/sweep.yaml'{named} --copy 'my copy'\n"
        in readme
    )
    assert str(Path.cwd()) not in readme
