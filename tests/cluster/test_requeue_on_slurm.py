"""A run that Slurm is about to end, as before its time is up: it asks for a place in the queue
first, ends, and goes on from there to the same weights.
"""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from callbacks.results import read_training
from experiment.run_checkpoints import last_checkpoint
from studies.launch.slurm_launcher import queued
from tests.cluster.test_ddp_on_slurm import SCRIPT, SLURM
from tests.devices.both import OPTIONS, ROOT, cli, start
from tests.waiting import until

pytestmark = [pytest.mark.usefixtures("slurm"), pytest.mark.long]


def test_the_requeue_comes_first_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLURALITY_PYTHON", sys.executable)
    epochs = ["--trainer.max_epochs", "150"]
    start(*cli("fit", *OPTIONS, *epochs, "--trainer.default_root_dir", tmp_path / "here"))
    place = [
        "--partition=cpu",
        "--nodes=1",
        "--ntasks-per-node=1",
        "--cpus-per-task=1",
        "--gres=none",
        f"--output={tmp_path / 'log'}",
    ]
    one = [
        "--trainer.num_nodes",
        "1",
        "--trainer.devices",
        "1",
        "--trainer.default_root_dir",
        str(tmp_path / "there"),
    ]
    words = ["sbatch", "--parsable", *place, str(SCRIPT), "fit", *OPTIONS, *epochs, *SLURM, *one]
    job = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    until(lambda: any((tmp_path / "there").glob("*/checkpoints/last.ckpt")) or not queued(job))
    assert queued(job), (tmp_path / "log").read_text()
    subprocess.run(["scancel", "--signal=USR1", job], check=True)
    until(lambda: not queued(job), pause=1.0)
    messages = (tmp_path / "log").read_text()
    (here,), (there,) = (
        [path.parent for path in (tmp_path / name).glob("*/config.yaml")]
        for name in ("here", "there")
    )
    record = read_training(there)
    assert record, messages
    assert (record.ended, record.epochs) == ("epochs", 150)
    assert "ended by SIGTERM at epoch" in messages, messages
    assert "Traceback" not in messages
    mine, theirs = (
        torch.load(last_checkpoint(run), weights_only=True)["state_dict"] for run in (here, there)
    )
    assert all(torch.equal(mine[name], theirs[name]) for name in mine | theirs)
