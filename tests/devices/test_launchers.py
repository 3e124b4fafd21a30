"""However the processes of a run are started, it ends with the weights of one process: by torchrun
and by Lightning here, by srun in tests/cluster.
"""

from pathlib import Path

import pytest

from tests.devices.both import ROOT, Trained, check_same, cli, python_module, read_run, start

DDP = [
    "--config",
    str(ROOT / "configs/trainer/ddp.yaml"),
    "--trainer.accelerator",
    "cpu",
    "--trainer.devices",
    "2",
]
TORCHRUN = python_module(
    "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(ROOT / "cli.py")
)

pytestmark = pytest.mark.long


@pytest.mark.parametrize("starter", [TORCHRUN, cli()], ids=["torchrun", "lightning"])
def test_two_processes_end_where_one_does(
    starter: list[str], one_process: tuple[list[str], Trained], tmp_path: Path
):
    options, one = one_process
    for command in ("fit", "test"):
        start(*starter, command, *options, *DDP, "--trainer.default_root_dir", tmp_path)
    check_same(one, read_run(tmp_path))
