"""A study as a job array on a real Slurm: one task requeued, another killed, the command given
again, and every result there exactly once.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.studies.launch.test_launch import ALONE, DIGITS, ROOT, results
from tests.waiting import HANGS, until

pytestmark = [pytest.mark.usefixtures("slurm"), pytest.mark.long]


def command(study: Path, runs: Path, *options: str) -> list[str]:
    return [
        sys.executable,
        str(ROOT / "cli.py"),
        "study",
        "run",
        str(study),
        "--runs",
        str(runs),
        *options,
    ]


def states(array: str) -> dict[str, str]:
    """The state of each task that is still in the queue."""
    answer = subprocess.run(
        ["squeue", "--noheader", "--array", "--format=%i %T", f"--jobs={array}"],
        capture_output=True,
        text=True,
    )
    return dict(line.split() for line in answer.stdout.splitlines())


def test_a_requeued_and_a_killed_task_lose_nothing(tmp_path: Path):
    study, runs = tmp_path / "study.yaml", tmp_path / "runs"
    grids = {
        "packed": {
            "data.delivery": ["SoftLabels", "Multipass"],
            "trainer.max_epochs": [400],
            "seed_everything": [0, 1],
        },
        "alone": {"alone": {"LeNet": ALONE}, "trainer.max_epochs": [15], "seed_everything": [0, 1]},
    }
    content = {"name": "cluster", "configs": [DIGITS], "grids": grids}
    study.write_text(yaml.safe_dump(content, sort_keys=False))
    slurm = command(study, runs, "--launcher", "slurm", "--partition", "gpu", "--max-parallel", "2")
    first = subprocess.Popen(slurm, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until((runs / ".studies/cluster/array").exists)
    array = (runs / ".studies/cluster/array").read_text()
    # both packs are in the middle of training
    until(lambda: len(list((runs / ".studies/cluster").glob("*.progress"))) == 2)
    running = sorted(task for task, state in states(array).items() if state == "RUNNING")
    subprocess.run(["scontrol", "requeue", running[0]], check=True)
    subprocess.run(["scancel", "--signal=KILL", "--full", running[1]], check=True)
    output = first.communicate(timeout=HANGS)[0]
    assert first.returncode == 1, output
    assert "has no results" in output
    before = results(runs)
    assert 0 < len(before) < 6
    again = subprocess.run(slurm, capture_output=True, text=True, timeout=HANGS)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "6 of 6 runs are done" in again.stdout
    after = results(runs)
    assert len(after) == 6
    assert {name: after[name] for name in before} == before
    subprocess.run(
        command(study, tmp_path / "here"), check=True, timeout=HANGS, capture_output=True
    )
    assert after == results(tmp_path / "here")


def test_two_processes_of_one_run_train_it_together(tmp_path: Path):
    """DDP under srun: two tasks share a run, and its results are those of one process."""
    study = tmp_path / "study.yaml"
    options = {"trainer.max_epochs": 2, "data.batch_size": 101, "trainer.accelerator": "cpu"}
    content = {
        "name": "ddp",
        "configs": [DIGITS],
        "options": options,
        "grids": {"alone": {"alone": {"LeNet": ALONE}}},
    }
    study.write_text(yaml.safe_dump(content, sort_keys=False))
    slurm = command(
        study, tmp_path / "two", "--launcher", "slurm", "--partition", "gpu", "--tasks", "2"
    )
    done = subprocess.run(slurm, capture_output=True, text=True, timeout=HANGS)
    logs = "".join(path.read_text()[-1500:] for path in (tmp_path / "two").rglob("*_log.err"))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    subprocess.run(command(study, tmp_path / "one"), check=True, timeout=HANGS, capture_output=True)
    (one,), (two,) = (list(results(tmp_path / name).values()) for name in ("one", "two"))
    assert json.loads(two)["metrics"] == pytest.approx(json.loads(one)["metrics"], abs=1e-5)
