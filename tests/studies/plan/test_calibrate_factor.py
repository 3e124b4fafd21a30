"""`calibrate` as a factor: runs are trained once and looked at once for each calibrator."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from callbacks.results import read_results
from cli import main
from core.errors import InputError
from studies.analysis.collect import Collection
from studies.launch.pack_job import run_pack
from studies.plan.second_stage import second_stage
from studies.plan.study import Study
from studies.report.planned_runs import check_planned_report
from studies.schema.calibrate_factor import as_calibrated

ROOT = Path(__file__).parents[3]
LEVELS = ["none", "temperature", "temperature_majority"]
TABLE = {"name": "t", "rows": "calibrate", "columns": ["kl", "ece_annotators"], "reference": "none"}


def study(folder: Path, calibrate: Any = LEVELS, **content: Any) -> Study:
    grid = {"data.delivery": ["SoftLabels", "Multipass"], "seed_everything": [0, 1]}
    if calibrate:
        grid["calibrate"] = calibrate
    path = folder / "study.yaml"
    plan = {"name": "small", "configs": [str(ROOT / "configs/digits.yaml")]}
    plan |= {"options": {"trainer.max_epochs": 2}, "grids": {"main": grid}} | content
    path.write_text(yaml.safe_dump(plan, sort_keys=False))
    return Study.load(path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    cells = study(folder).runs()
    assert not run_pack(cells, folder / "runs", folder / "state.ckpt", False, lambda _: None)
    return folder / "runs"


def test_levels_are_no_runs_and_change_no_name(tmp_path: Path):
    plain, calibrated = study(tmp_path, None).runs(), study(tmp_path).runs()
    assert [run.name for run in plain] == [run.name for run in calibrated]
    assert [run.factors for run in plain] == [run.factors for run in calibrated]
    (probe,) = calibrated[0].config["trainer"]["callbacks"]
    assert probe["class_path"] == "callbacks.Calibrators"
    assert probe["init_args"]["forms"] == LEVELS[1:]
    assert study(tmp_path, ["none"]).runs()[0].config == plain[0].config


def test_a_run_stands_in_its_grid_once_for_each_level(runs: Path, tmp_path: Path):
    collection = Collection.of(study(tmp_path), runs)
    records = collection.records("main")
    assert len(records) == 4 * len(LEVELS)
    assert collection.levels("main")["calibrate"] == LEVELS
    first = {record.factors["calibrate"]: record for record in records[: len(LEVELS)]}
    results = read_results(records[0].folder)
    assert results
    assert first["none"].metrics == results["metrics"]
    for level in LEVELS[1:]:
        assert first[level].metrics["kl"] == results["metrics"][f"kl_{level}"]
        assert "val_loss" not in first[level].metrics
    assert first["temperature"].metrics["kl"] != first["none"].metrics["kl"]


def test_skill_is_that_of_the_calibrated_score():
    bounds = {"floor": 0.5, "ceiling": 0.1, "low": 0.1, "high": 0.1, "skill": 0.25}
    unknown = {"floor": None, "ceiling": None, "low": None, "high": None, "skill": None}
    results = {
        "metrics": {"kl": 0.4, "kl_vector": 0.2, "ece": 0.1, "ece_vector": 0.05},
        "worth": {"kl": bounds, "ece": unknown, "kl_hlv": bounds},
    }
    worth = as_calibrated(results, "vector")["worth"]
    assert worth == {"kl": {**bounds, "skill": pytest.approx(0.75)}, "ece": unknown}


def test_a_report_compares_calibrators_seed_by_seed(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    claim = {"id": "c", "claim": "Temperature scaling lowers KL.", "test": "less", "metric": "kl"}
    claim["paper"] = "none"
    claim |= {"where": {"data.delivery": "SoftLabels"}, "rows": "calibrate"}
    claim |= {"level": "temperature", "reference": "none"}
    table = {**TABLE, "groups": "data.delivery"}
    content = {"report": {"tables": [table], "claims": [claim]}}
    path = study(tmp_path, **content).path
    main(["study", "report", str(path), "--runs", str(runs)])
    written = next(tmp_path.rglob("t.md"), None) or next(runs.parent.rglob("t.md"))
    text = written.read_text()
    assert all(level in text for level in LEVELS)


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"tables": [{**TABLE, "rows": "data.delivery", "reference": "SoftLabels"}]}, "calibrate"),
        (
            {"figures": [{"name": "f", "kind": "curves", "rows": "data.delivery"}]},
            "would average over calibrate",
        ),
        (
            {
                "figures": [
                    {
                        "name": "f",
                        "kind": "history",
                        "metric": "val/kl",
                        "lines": "data.delivery",
                        "where": {"calibrate": "temperature"},
                    }
                ]
            },
            "made of what models predict themselves.*say where: {calibrate: none}",
        ),
    ],
)
def test_a_part_of_raw_predictions_is_refused(tmp_path: Path, part: dict, sentence: str):
    planned = study(tmp_path, report=part, predict=True)
    with pytest.raises(InputError, match=sentence):
        check_planned_report(planned, planned.runs(), tmp_path)


@pytest.mark.parametrize(
    ("levels", "sentence"),
    [
        (["none", "temprature"], "grids.main.calibrate is temprature; .*did you mean temperature"),
        ({"raw": {}}, "grids.main.calibrate must be a list of calibrators"),
    ],
)
def test_wrong_levels_are_told(tmp_path: Path, levels: Any, sentence: str):
    with pytest.raises(InputError, match=sentence):
        study(tmp_path, levels).runs()


def test_a_selection_may_calibrate_what_it_chose(runs: Path, tmp_path: Path):
    then = {"seed_everything": [0], "calibrate": ["none", "temperature"]}  # fewer than the grid
    chosen = {"best": {"from": "main", "for_each": ["data.delivery"], "then": then}}
    planned = study(tmp_path, selections=chosen)
    assert planned.selections["best"].runs == 2
    stage = second_stage(planned, planned.runs(), runs)
    assert [run.calibrate["best"] for run in stage.runs] == [then["calibrate"]] * 2
    records = Collection.of(planned, runs).records("best")
    assert [record.factors["calibrate"] for record in records] == then["calibrate"] * 2
    chosen["best"]["for_each"] = ["calibrate"]
    with pytest.raises(InputError, match="for_each is calibrate; it must be a factor of the grid"):
        study(tmp_path, selections=chosen)
