"""A report section is checked against what the runs will hold, before anything trains."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli import main
from core.errors import InputError
from studies.plan.study import Study
from studies.report.planned_runs import check_planned_report
from tests.finished import FINISHED

ROOT = Path(__file__).parents[3]
TABLE = {"name": "t", "rows": "data.delivery", "where": {"data.votes_per_item": 5}}
CURVES = {"name": "c", "kind": "curves", "rows": "data.delivery", "where": TABLE["where"]}
MAP = {"name": "m", "kind": "data_map", "panels": "data.delivery", "where": TABLE["where"]}
HISTORY = {
    "name": "h",
    "kind": "history",
    "lines": "data.delivery",
    "panels": "data.votes_per_item",
}
CLAIM = {
    **{"id": "one", "claim": "One.", "paper": "Table 1", "test": "less"},
    **{"rows": "data.delivery", "where": TABLE["where"]},
    **{"level": "Multipass", "reference": "SoftLabels"},
}


def study_of(
    folder: Path, report: dict[str, Any], callbacks: list[Any] | None = None, **entries: Any
) -> Study:
    content = {
        "name": "ahead",
        "configs": ["configs/digits.yaml"],
        "grids": {
            "main": {
                "data.delivery": ["SoftLabels", "Multipass"],
                "data.votes_per_item": [5, 10],
                "seed_everything": [0, 1],
            }
        },
        "options": {"trainer.callbacks": callbacks} if callbacks else {},
        "report": report,
        **entries,
    }
    path = folder / "ahead.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return Study.load(path)


def check(study: Study, runs: Path = Path("absent")) -> None:
    check_planned_report(study, study.runs(), runs)


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (
            {"tables": [{**TABLE, "columns": ["soft_nl"]}]},
            r"report\.tables\[0\]\.columns is soft_nl; .*\(did you mean soft_nll\?\)",
        ),
        (
            {"tables": [{**TABLE, "colums": ["kl"]}]},
            r"report\.tables\[0\]\.colums is not an option; .*\(did you mean columns\?\)",
        ),
        (
            {"tables": [{**TABLE, "columns": ["hessian_max"]}]},
            r"columns is hessian_max, which the callback HessianSpectrum measures, and no run",
        ),
        ({"tables": [{**TABLE, "columns": ["kl_hlv"]}]}, "StratumScores"),
        ({"tables": [{**TABLE, "columns": ["kl_original"]}]}, "StratumScores"),
        ({"tables": [{**TABLE, "columns": ["svhn_auroc_energy"]}]}, "OODScores"),
        ({"tables": [{**TABLE, "columns": ["best_val_soft_nll"]}]}, "TrainingDynamics"),
        ({"figures": [CURVES]}, r"report\.figures\[0\] is made of predictions\.parquet, which .*"),
        (
            {
                "mode_shifts": [
                    {**TABLE, "groups": "data.votes_per_item", "reference": "SoftLabels"}
                ]
            },
            "say predict: true",
        ),
        ({"figures": [MAP]}, r"what the callback DataCartography writes, and no run of the grid"),
        ({"figures": [{**HISTORY, "metric": "val/js_hlv"}]}, "TrainingDynamics"),
        ({"figures": [{**HISTORY, "metric": ["val/kl", "train/kl"]}]}, "EpochScores"),
        ({"claims": [{**CLAIM, "metric": "gradient_variance"}]}, "GradientVariance"),
        ({"claims": [{**CLAIM, "metric": "kl", "level": "Mixup"}]}, "level is Mixup; it must be"),
        (
            {"comparisons": [{**TABLE, "published": {"cka": "basins.cka"}}]},
            r"report\.comparisons\[0\]\.published\.cka is basins\.cka",
        ),
    ],
)
def test_what_runs_will_not_hold_is_refused(report: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises(InputError, match=message):
        check(study_of(tmp_path, report))


@pytest.mark.parametrize(
    ("report", "callback"),
    [
        ({"tables": [{**TABLE, "columns": ["hessian_max"]}]}, "HessianSpectrum"),
        ({"tables": [{**TABLE, "columns": ["kl_hlv", "items_hlv"]}]}, "StratumScores"),
        ({"figures": [MAP]}, "DataCartography"),
        ({"figures": [{**HISTORY, "metric": ["train/kl", "train/loss"]}]}, "EpochScores"),
        ({"tables": [{**TABLE, "columns": ["my_score"]}]}, "tests.hostile.own_probe.OwnProbe"),
    ],
)
def test_what_a_callback_measures_is_taken(report: dict[str, Any], callback: str, tmp_path: Path):
    if "." not in callback:
        check(study_of(tmp_path, report, [{"class_path": callback}]))
        return
    study = study_of(tmp_path, report)  # somebody's own may log anything
    cells = study.runs()
    for run in cells:
        run.config["trainer"]["callbacks"] = [{"class_path": callback}]
    check_planned_report(study, cells, tmp_path)


def test_a_callback_of_other_runs_does_not_count(tmp_path: Path):
    probes = {
        "with": {"trainer.callbacks": [{"class_path": "StratumScores"}]},
        "without": {"trainer.max_epochs": 2},
    }
    grid = {"data.delivery": ["SoftLabels"], "probes": probes, "seed_everything": [0]}
    table = {"name": "t", "rows": "data.delivery", "columns": ["kl_hlv"]}
    for level in probes:
        report = {"tables": [{**table, "where": {"probes": level}}]}
        study = study_of(tmp_path, report, grids={"main": grid})
        if level == "with":
            check(study)
        else:
            with pytest.raises(InputError, match="StratumScores"):
                check(study)


def test_what_is_there_already_counts(tmp_path: Path):
    report = {"tables": [{**TABLE, "columns": ["my_score", "hessian_max"]}], "figures": [CURVES]}
    study = study_of(tmp_path, report)
    with pytest.raises(InputError, match="my_score"):
        check(study, tmp_path / "runs")
    folder = study.runs()[0].folder(tmp_path / "runs")
    folder.mkdir(parents=True)
    metrics = {"my_score": 1.0, "hessian_max": 2.0}
    (folder / "results.json").write_text(json.dumps({**FINISHED, "metrics": metrics}))
    (folder / "predictions.parquet").write_bytes(b"")
    check(study, tmp_path / "runs")


@pytest.mark.parametrize("command", ["plan", "run"])
def test_commands_refuse_before_anything_trains(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture
):
    study = study_of(tmp_path, {"tables": [{**TABLE, "columns": ["soft_nl"]}]})
    with pytest.raises(SystemExit) as end:
        main(["study", command, str(study.path), "--runs", str(tmp_path / "runs")])
    assert end.value.code == 2
    assert "did you mean soft_nll?" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "configs/studies").glob("*.yaml")))
def test_every_study_of_the_repository_passes(name: str):
    check(Study.load(ROOT / "configs" / "studies" / name))
