"""A signal to one process of a run, or to all: the run ends soon, says so once, leaves nobody behind, and the same command continues."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.devices.both import OPTIONS, ROOT, cli
from tests.devices.test_end_together import left_of
from tests.devices.test_launchers import DDP, TORCHRUN
from tests.waiting import HANGS, until

pytestmark = pytest.mark.long


def ranks_of(session: int) -> dict[int, int]:
    """The processes of a run by their rank: Lightning's first has no number."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words, environment = ((place / name).read_bytes().split(b"\0") for name in ("cmdline", "environ"))
            of = int((place / "stat").read_text().rsplit(") ", 1)[1].split()[3])
        except OSError:  # it has ended meanwhile
            continue
        if of == session and b"fit" in words and not any(b"torch.distributed.run" in word for word in words):
            given = [entry for entry in environment if entry.startswith(b"LOCAL_RANK=")]
            found[int(given[0].split(b"=")[1]) if given else 0] = int(place.name)
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
@pytest.mark.parametrize("to", [0, 1, "all"])
@pytest.mark.parametrize("starter", [TORCHRUN, cli()], ids=["torchrun", "lightning"])
def test_all_processes_end_and_one_line_is_said(starter: list[str], to: int | str, number: signal.Signals, tmp_path: Path):
    torchrun = starter is TORCHRUN
    options = [*OPTIONS, *DDP, "--trainer.max_epochs", "100000", "--trainer.default_root_dir", str(tmp_path / "runs")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with open(tmp_path / "said", "w") as said:
        command = subprocess.Popen([*starter, "fit", *options], stdout=said, stderr=said, cwd=ROOT, env=environment, start_new_session=True)
        until(lambda: any(tmp_path.glob("runs/*/checkpoints/last.ckpt")) or command.poll() is not None)
        assert command.poll() is None, (tmp_path / "said").read_text()
        ranks = ranks_of(command.pid)
        assert ranks.keys() == {0, 1}
        if isinstance(to, int):
            os.kill(ranks[to], number)
        else:
            os.killpg(command.pid, number)  # as a terminal or Slurm does
        code = command.wait(HANGS)
    until(lambda: not left_of(command.pid))
    text = (tmp_path / "said").read_text()
    name = {"SIGTERM", "Ctrl-C"} if torchrun and to == "all" else {"SIGTERM" if number is signal.SIGTERM else "Ctrl-C"}  # torchrun hands on its own
    told = [line for line in text.splitlines() if "the same command continues." in line]
    assert len(told) == 1, text
    assert any(told[0].startswith(f"ended by {each} at epoch ") for each in name), text
    assert told[0].endswith(" of 100000; the same command continues.")
    assert "Connection closed" not in text
    if not torchrun:  # which ends with a report of its own
        assert code == 128 + number
        assert "Traceback" not in text
