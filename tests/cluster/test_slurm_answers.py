"""Slurm itself: without it no test of a launcher means anything."""

import subprocess
from pathlib import Path

import pytest

from tests.waiting import HANGS

pytestmark = pytest.mark.usefixtures("slurm")


def output_of(*command: str) -> str:
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, timeout=HANGS
    ).stdout


def test_srun_starts_every_task():
    assert sorted(output_of("srun", "--ntasks=2", "printenv", "SLURM_PROCID").split()) == ["0", "1"]


@pytest.mark.parametrize("partition", ["cpu", "gpu"])
def test_every_task_of_an_array_ends(tmp_path: Path, partition: str):
    options = ("--wait", "--array=0-1", f"--partition={partition}", f"--output={tmp_path}/%a.txt")
    output_of("sbatch", *options, "--wrap", "echo $SLURM_ARRAY_TASK_ID")
    assert [(tmp_path / f"{task}.txt").read_text() for task in range(2)] == ["0\n", "1\n"]
