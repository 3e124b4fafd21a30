"""What ends one process of a run ends all of them, soon and with one sentence, however they were
started; none stays behind.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import InputError
from experiment.processes.end_together import check_port
from tests import processes
from tests.devices.both import OPTIONS, ROOT, cli
from tests.devices.test_launchers import DDP, TORCHRUN
from tests.waiting import HANGS, until


def left_of(session: int) -> list[str]:
    """The processes of a session that have not ended."""
    result = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of = (place / "stat").read_text().rsplit(") ", 1)[1].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(of) == session and state != "Z":
            result.append((place / "cmdline").read_text())
    return result


def failing(starter: list[str], folder: Path, **environment: str) -> tuple[int, list[str]]:
    """Fit with two processes; returns the exit code and what was said as an error, after all of
    them have ended.
    """
    options = [
        *OPTIONS,
        "--data",
        "tests.devices.mistaken_digits.MistakenDigits",
        *DDP,
        "--trainer.default_root_dir",
        str(folder),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    with open(folder / "said", "w") as message:
        if starter == cli():
            command = processes.Process(
                ["fit", *options], env=environment, stdout=message, stderr=message
            )
        else:
            command = subprocess.Popen(
                [*starter, "fit", *options],
                stdout=message,
                stderr=message,
                cwd=ROOT,
                env=environment,
                start_new_session=True,
            )
        code = command.wait(HANGS)
    until(lambda: not left_of(command.pid))
    return code, [
        line
        for line in (folder / "said").read_text().splitlines()
        if not line.startswith("Initializing distributed")
    ]


def test_a_mistake_that_one_process_alone_finds_is_told_once_and_ends_both(tmp_path: Path):
    code, message = failing(cli(), tmp_path, MISTAKE="1 setup")
    assert message == ["error on rank 1: votes.csv is not there in setup; name a file that is."]
    assert code == 2


def test_a_port_that_another_program_uses_is_told_and_leaves_no_process(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, message = failing(cli(), tmp_path, MASTER_PORT=port)
    result = (
        f"error: MASTER_PORT is {port}, which another program on this machine uses; set it "
        "to a free port, or leave it out and one is found."
    )
    assert message == [result]
    assert code == 2


@pytest.mark.long
@pytest.mark.parametrize(
    "mistake", ["1 __init__", "0 setup", "all setup", "0 train_dataloader", "1 train_dataloader"]
)
def test_wherever_it_is_found(mistake: str, tmp_path: Path):
    rank, where = mistake.split()
    code, (message,) = failing(cli(), tmp_path, MISTAKE=mistake)
    assert message.endswith(f"votes.csv is not there in {where}; name a file that is.")
    assert message.startswith({"0": "error: ", "1": "error on rank 1: ", "all": "error"}[rank])
    assert code == 2


@pytest.mark.long
@pytest.mark.parametrize("mistake", ["all __init__", "1 setup", "0 train_dataloader"])
def test_torchrun_ends_with_its_own_report_after_the_sentence(mistake: str, tmp_path: Path):
    code, messages = failing(TORCHRUN, tmp_path, MISTAKE=mistake)
    assert messages[0].endswith(
        f"votes.csv is not there in {mistake.split()[1]}; name a file that is."
    )
    assert sum("votes.csv" in line for line in messages) == 1
    assert not [line for line in messages if "Connection closed" in line]
    assert "  exitcode  : 2" in "\n".join(messages)
    assert code == 1


@pytest.mark.parametrize("port", ["abc", "80000", "-1"])
def test_what_is_no_port_is_refused_before_processes_try_to_meet(
    port: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MASTER_PORT", port)
    with pytest.raises(
        InputError, match=f"MASTER_PORT is {port}; it must be a number from 0 to 65535"
    ):
        check_port()


# one process of two, with a message on its way when it ends; exit functions run from the last
PARTING = """
import atexit, sys
import torch
import torch.distributed as dist
from experiment.processes.end_together import leave_group

rank, store = int(sys.argv[1]), "file://" + sys.argv[2]
dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
atexit.register(lambda: print("together" if dist.is_initialized() else "parted"))
atexit.register(leave_group)
dist.all_gather([torch.empty(1) for _ in range(2)], torch.ones(1), async_op=True)
"""


def test_processes_part_before_python_ends(tmp_path: Path):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PARTING, str(rank), str(tmp_path / "store")],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in started:
        assert process.communicate(timeout=HANGS)[0] == "parted\n"
        assert process.returncode == 0
