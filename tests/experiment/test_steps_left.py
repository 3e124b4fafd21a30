"""A study takes no exit code for a result: what is missing is made up for, and what cannot be had
is said apart.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from callbacks.results import read_results, read_training
from cli import main
from experiment.steps_left import steps_left
from studies.plan.study import Study
from tests.studies.launch.test_launch import ALONE, write_study

pytestmark = pytest.mark.usefixtures("forked_jobs")
DYNAMICS = {"trainer.callbacks": [{"class_path": "callbacks.TrainingDynamics"}]}


def study_run(study: Path, capsys: pytest.CaptureFixture) -> tuple[int, str]:
    capsys.readouterr()
    try:
        main(["study", "run", str(study), "--runs", str(study.parent / "runs"), "--processes", "1"])
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    return code, capsys.readouterr().out


@pytest.mark.parametrize(
    "options", [{}, pytest.param(ALONE, marks=pytest.mark.long)], ids=["packed", "alone"]
)
def test_a_last_step_that_is_missing_is_made_up_for_without_training_again(
    tmp_path: Path, capsys, options: dict
):
    """Predictions that were deleted or not asked for, and a probe that was added later: of packed
    members and of a run alone.
    """
    for folder in (tmp_path,):
        grids = {"main": {"seed_everything": [0, 1]}}
        study = write_study(folder, grids=grids, options={"trainer.max_epochs": 2, **options})
        assert study_run(study, capsys)[0] == 0
        runs = Study.load(study).runs()
        folders = [run.folder(folder / "runs") for run in runs]
        before = [json.loads((run / "results.json").read_text()) for run in folders]
        trained = [(run / "training.json").stat().st_mtime_ns for run in folders]
        write_study(
            folder,
            grids=grids,
            options={"trainer.max_epochs": 2, **options, **DYNAMICS},
            predict=True,
        )
        assert all(
            steps_left(run.config, run.folder(folder / "runs"), True) == ["test", "predict"]
            for run in Study.load(study).runs()
        )
        assert study_run(study, capsys)[0] == 0
        for run, results, time_of_training in zip(folders, before, trained, strict=True):
            after = read_results(run) or {}
            assert {name: after["metrics"][name] for name in results["metrics"]} == results[
                "metrics"
            ]
            assert [probe["class_path"] for probe in after["probes"]] == [
                "callbacks.TrainingDynamics"
            ]
            assert (run / "predictions.parquet").exists()
            assert (run / "training.json").stat().st_mtime_ns == time_of_training
        (folders[0] / "predictions.parquet").unlink()
        assert study_run(study, capsys)[0] == 0
        assert (folders[0] / "predictions.parquet").exists()


def test_a_study_without_all_its_runs_says_so_and_exits_non_zero(tmp_path: Path, capsys):
    study = write_study(
        tmp_path,
        grids={"main": {"seed_everything": [0]}},
        options={"trainer.max_epochs": 5000, "trainer.max_time": "00:00:00:01"},
    )
    code, output = study_run(study, capsys)
    assert code == 1
    assert "0 of 1 runs are done, 1 are missing" in output
    assert "trainer.max_time (0:00:01) is over at epoch" in output
    assert "of 5000; the same command continues." in output
    (run,) = Study.load(study).runs()
    assert read_training(run.folder(tmp_path / "runs")) is None


def test_a_second_command_on_a_run_is_told_who_has_it(tmp_path: Path, capsys, monkeypatch):
    """It waits; of several processes that would wait for each other in vain, the first says so and
    ends.
    """
    from tests.experiment.test_finished import options

    words = options(tmp_path)
    run_dir = main(["fit", *words]).run_dir
    script = (
        "import sys, time; from pathlib import Path; from core.folder_lock import "
        f"folder_lock\nwith folder_lock(Path({str(run_dir)!r}), 'trains this run'):\n    "
        "print('held', flush=True); sys.stdin.readline()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit, match="2"):
        main(["test", *words])
    assert f"is held by process {holder.pid} on" in capsys.readouterr().err
    monkeypatch.delenv("WORLD_SIZE")
    holder.communicate("\n", timeout=600)
    main(["test", *words])
    assert read_results(run_dir)
