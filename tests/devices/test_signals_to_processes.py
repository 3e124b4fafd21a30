"""A signal to one process of a run, or to all: the run ends soon, says so once, leaves nobody
behind, and the same command continues.
"""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.devices.both import OPTIONS, ROOT, cli
from tests.devices.test_launchers import DDP, TORCHRUN
from tests.waiting import HANGS, until

pytestmark = pytest.mark.long


def processes_of(folder: Path) -> dict[int, int]:
    """The processes of a run by their rank, known by the folder of its runs on their command line;
    Lightning's first has no number, torchrun is -1.
    """
    result = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words, environment = (
                (place / name).read_bytes().split(b"\0") for name in ("cmdline", "environ")
            )
        except OSError:  # it has ended meanwhile
            continue
        if os.fsencode(folder) in words:
            given = [entry for entry in environment if entry.startswith(b"LOCAL_RANK=")]
            result[
                -1
                if b"torch.distributed.run" in words
                else int(given[0].split(b"=")[1])
                if given
                else 0
            ] = int(place.name)
    return result


@pytest.mark.parametrize(
    ("starter", "to", "number"),
    [
        (TORCHRUN, 1, signal.SIGTERM),
        (TORCHRUN, "all", signal.SIGTERM),
        (cli(), 0, signal.SIGINT),
        (cli(), 1, signal.SIGTERM),
        (cli(), "all", signal.SIGINT),
    ],
    ids=["torchrun, the second", "torchrun, all", "the first", "the second", "all"],
)
def test_all_processes_end_and_one_line_is_said(
    starter: list[str], to: int | str, number: signal.Signals, tmp_path: Path
):
    torchrun, runs = starter is TORCHRUN, tmp_path / "runs"
    options = [
        *OPTIONS,
        *DDP,
        "--trainer.max_epochs",
        "100000",
        "--trainer.default_root_dir",
        str(runs),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with open(tmp_path / "said", "w") as message:
        command = subprocess.Popen(
            [*starter, "fit", *options],
            stdout=message,
            stderr=message,
            cwd=ROOT,
            env=environment,
            start_new_session=True,
        )
    try:
        until(lambda: any(runs.glob("*/checkpoints/last.ckpt")) or command.poll() is not None)
        assert command.poll() is None, (tmp_path / "said").read_text()
        ranks = processes_of(runs)
        if isinstance(to, int):
            os.kill(ranks[to], number)
        else:
            os.killpg(command.pid, number)  # as a terminal or Slurm does
        code = command.wait(HANGS)
        until(lambda: not processes_of(runs))
    finally:
        for process in processes_of(runs).values():
            os.kill(process, signal.SIGKILL)
    text = (tmp_path / "said").read_text()
    # torchrun hands on its own
    name = (
        {"SIGTERM", "Ctrl-C"}
        if torchrun and to == "all"
        else {"SIGTERM" if number is signal.SIGTERM else "Ctrl-C"}
    )
    result = [line for line in text.splitlines() if "the same command continues." in line]
    assert len(result) == 1, text
    assert any(result[0].startswith(f"ended by {each} at epoch ") for each in name), text
    assert result[0].endswith(" of 100000; the same command continues.")
    assert "Connection closed" not in text
    if not torchrun:  # which ends with a report of its own
        assert code == 128 + number
        assert "Traceback" not in text
