"""One run on two nodes of a real Slurm (two daemons on this machine), by the sbatch script that
users are given: it ends with the weights of one process, or, where one process finds a mistake,
with one sentence.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.devices.both import OPTIONS, ROOT, Trained, check_same, read_run, start
from tests.waiting import HANGS

pytestmark = [pytest.mark.usefixtures("slurm"), pytest.mark.long]

SLURM = ["--config", str(ROOT / "configs/trainer/slurm.yaml"), "--trainer.accelerator", "cpu"]
SCRIPT = ROOT / "configs/trainer/slurm.sbatch"


@pytest.mark.parametrize(
    ("nodes", "tasks", "partition"), [(2, 1, "nodes"), (1, 2, "cpu")], ids=["two nodes", "one node"]
)
def test_two_tasks_end_where_one_process_does(
    nodes: int,
    tasks: int,
    partition: str,
    one_process: tuple[list[str], Trained],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("PLURALITY_PYTHON", sys.executable)
    options, one = one_process
    here = [
        "--trainer.num_nodes",
        str(nodes),
        "--trainer.devices",
        str(tasks),
        "--trainer.default_root_dir",
        str(tmp_path),
    ]
    place = [
        f"--partition={partition}",
        f"--nodes={nodes}",
        f"--ntasks-per-node={tasks}",
        "--cpus-per-task=1",
        "--gres=none",
    ]
    for command in ("fit", "test"):
        log = tmp_path / f"{command}.log"
        try:
            start(
                "sbatch",
                "--wait",
                f"--output={log}",
                *place,
                SCRIPT,
                command,
                *options,
                *SLURM,
                *here,
            )
        except AssertionError as error:
            raise AssertionError(
                log.read_text()[-3000:] if log.exists() else "the job left no log"
            ) from error
    two = read_run(tmp_path)
    assert len({rank["host"] for rank in two.ranks}) == nodes
    check_same(one, two)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_mistake_that_one_task_alone_finds_is_told_once_and_ends_the_job(
    rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLURALITY_PYTHON", sys.executable)
    monkeypatch.setenv("MISTAKE", f"{rank} setup")
    place = [
        "--partition=nodes",
        "--nodes=2",
        "--ntasks-per-node=1",
        "--cpus-per-task=1",
        "--gres=none",
        f"--output={tmp_path}/log",
    ]
    here = [
        "--data",
        "tests.devices.mistaken_digits.MistakenDigits",
        "--trainer.devices",
        "1",
        "--trainer.default_root_dir",
        str(tmp_path),
    ]
    job = ["sbatch", "--wait", *place, str(SCRIPT), "fit", *OPTIONS, *SLURM, *here]
    assert subprocess.run(job, cwd=ROOT, capture_output=True, timeout=HANGS).returncode != 0
    messages = (tmp_path / "log").read_text()
    assert messages.count("votes.csv is not there in setup; name a file that is.") == 1, messages
    assert "Exited with exit code 2" in messages, messages
    assert "Traceback" not in messages
