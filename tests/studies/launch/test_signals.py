"""A signal to a study, or to one of its jobs: a line that says how far it came, a code that says
why, and the same command continues to the same results.
"""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from callbacks.results import read_results
from tests import processes
from tests.experiment.test_finished import start, wait_until
from tests.studies.launch.test_launch import ALONE, write_study

# options and epochs: so many that the signal finds the job at work
KINDS = {
    "packed": ({}, 12),
    "alone": (ALONE, 4),
}


def words(folder: Path, kind: str) -> list[str]:
    """The command of a study of two runs below a folder of its own."""
    options, epochs = KINDS[kind]
    folder.mkdir()
    study = write_study(
        folder,
        grids={"main": {"seed_everything": [0, 1]}},
        options={"trainer.max_epochs": epochs, **options},
    )
    return ["study", "run", str(study), "--runs", str(folder / "runs"), "--processes", "1"]


def finish(command: list[str]) -> None:
    done = processes.run(command)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module", params=KINDS)
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """A kind of study, and the runs of one that nobody touched."""
    folder = tmp_path_factory.mktemp("whole") / "study"
    finish(words(folder, request.param))
    return request.param, folder / "runs"


def at_work(kind: str, folder: Path) -> bool:
    """Whether a job has come past its first epochs, which it saves: a pack tells its share, a run
    alone leaves a checkpoint.
    """
    return any(
        folder.glob(
            "runs/.studies/small/*.progress"
            if kind == "packed"
            else "runs/*/checkpoints/last-before.ckpt"
        )
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("of", "number", "code", "name"),
    [("job", signal.SIGTERM, 1, "SIGTERM"), ("study", signal.SIGINT, 130, "Ctrl-C")],
)
def test_a_signal_is_told_and_the_same_command_continues(
    tmp_path: Path, whole: tuple[str, Path], of: str, number: signal.Signals, code: int, name: str
):
    """To the results of a study that nobody touched.

    `study run` itself goes on after a signal to a job of its, and says in the end what is missing.
    """
    kind, untouched = whole
    command = words(tmp_path / "study", kind)
    process = start(command)
    wait_until(process, lambda: at_work(kind, tmp_path / "study"))
    os.kill(job_of(process) if of == "job" else process.pid, number)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == code, output
    if of == "job":
        assert f"ended with code 143: ended by {name} at epoch " in output
        assert f" of {KINDS[kind][1]}; the same command continues." in output
        assert (
            "0 of 2 runs are done, 2 are missing"
            if kind == "packed"
            else "1 of 2 runs are done, 1 are missing"
        ) in output
    else:
        assert (
            output.strip().splitlines()[-1]
            == f"small: ended by {name}; 0 of 2 runs are done, and the same command continues."
        )
    finish(command)
    for run in untouched.glob("digits-*"):
        mine, theirs = read_results(run), read_results(tmp_path / "study" / "runs" / run.name)
        assert mine
        assert {**mine, "checkpoint": ""} == {**(theirs or {}), "checkpoint": ""}


def job_of(process: subprocess.Popen) -> int:
    """The process that a study's job server forked."""
    result: list[int] = []

    def there() -> bool:
        result.extend(job for server in children(process.pid) for job in children(server))
        return bool(result)

    wait_until(process, there)
    return result[0]


def children(parent: int) -> list[int]:
    """By what /proc says of every process, as not every system lists the children of one."""
    result = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == parent:
            result.append(int(path.parent.name))
    return result
