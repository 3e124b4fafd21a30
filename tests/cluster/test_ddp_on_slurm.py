"""One run on two nodes of a real Slurm (two daemons on this machine), by the sbatch script that users are given: it ends with the weights of one process."""

import sys
from pathlib import Path

import pytest

from tests.devices.both import ROOT, Trained, check_same, read_run, start

pytestmark = [pytest.mark.usefixtures("slurm"), pytest.mark.long]

SLURM = ["--config", str(ROOT / "configs/trainer/slurm.yaml"), "--trainer.accelerator", "cpu"]
SCRIPT = ROOT / "configs/trainer/slurm.sbatch"


@pytest.mark.parametrize(("nodes", "tasks", "partition"), [(2, 1, "nodes"), (1, 2, "cpu")], ids=["two nodes", "one node"])
def test_two_tasks_end_where_one_process_does(
    nodes: int, tasks: int, partition: str, one_process: tuple[list[str], Trained], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLURALITY_PYTHON", sys.executable)
    options, one = one_process
    here = ["--trainer.num_nodes", str(nodes), "--trainer.devices", str(tasks), "--trainer.default_root_dir", str(tmp_path)]
    place = [f"--partition={partition}", f"--nodes={nodes}", f"--ntasks-per-node={tasks}", "--cpus-per-task=1", "--gres=none"]
    for command in ("fit", "test"):
        log = tmp_path / f"{command}.log"
        try:
            start("sbatch", "--wait", f"--output={log}", *place, SCRIPT, command, *options, *SLURM, *here)
        except AssertionError as error:
            raise AssertionError(log.read_text()[-3000:] if log.exists() else "the job left no log") from error
    two = read_run(tmp_path)
    assert len({rank["host"] for rank in two.ranks}) == nodes
    check_same(one, two)
