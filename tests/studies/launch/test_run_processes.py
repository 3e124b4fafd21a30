"""A run of a study on several devices is started as a user would start it, and its results are
those of one device.
"""

from pathlib import Path

import pytest

from callbacks.results import read_results
from studies.launch.run_processes import needs_processes
from tests.experiment.test_finished import start
from tests.studies.launch.test_launch import write_study


@pytest.mark.parametrize(
    ("trainer", "several"),
    [
        ({}, False),
        ({"devices": 1}, False),
        ({"devices": "3"}, True),
        ({"devices": [0, 1]}, True),
        ({"devices": "0,"}, False),
        ({"devices": "0,1"}, True),
    ],
)
def test_when_lightning_would_start_more_processes(trainer: dict, several: bool):
    assert needs_processes({"trainer": {"accelerator": "cpu", **trainer}}) == several


@pytest.mark.long
def test_a_study_of_runs_on_two_devices(tmp_path: Path):
    results = {}
    for devices in (1, 2):
        folder = tmp_path / str(devices)
        folder.mkdir()
        options = {
            "trainer.max_epochs": 2,
            "model.network": "LeNet",
            "trainer.accelerator": "cpu",
            "trainer.devices": devices,
        }
        study = write_study(
            folder, grids={"main": {"seed_everything": [0]}}, options=options, predict=True
        )
        process = start(
            ["study", "run", str(study), "--runs", str(folder / "runs"), "--processes", "1"]
        )
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0, output
        (run,) = (folder / "runs").glob("digits-*")
        results[run.name, devices] = read_results(run)
        assert (run / "predictions.parquet").exists()
    (one, _), (two, _) = results
    assert one == two  # the same run, by its name
    match = [result["metrics"] if result else {} for result in results.values()]
    assert match[0] == pytest.approx(match[1], abs=1e-4)
