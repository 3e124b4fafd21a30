"""Jobs forked from one process: each is alone, its end is told, and a server that dies takes
nothing with it but its own jobs.
"""

import os
import signal
from pathlib import Path

import pytest

from studies.launch.job_server import JobServer
from tests.waiting import until


def wait(server: JobServer, jobs: int = 1) -> dict[Path, int]:
    """The codes of so many jobs, once they have ended."""
    codes: dict[Path, int] = {}

    def ended() -> bool:
        codes.update(server.ended())
        return len(codes) >= jobs

    until(ended)
    return codes


@pytest.fixture
def server(forked_jobs: None):
    """One that starts at once; tests/studies/plan/test_places.py runs a study by a server whose
    Python is started anew.
    """
    server = JobServer(threads=1)
    yield server
    server.kill()


def test_jobs_end_each_for_itself_and_when_their_server_is_killed_another_takes_its_place(
    server: JobServer, tmp_path: Path
):
    jobs = [tmp_path / f"job {n}.json" for n in range(3)]
    for job in jobs:
        server.start(job)
    assert wait(server, len(jobs)) == dict.fromkeys(jobs, 1)
    for job in jobs:
        assert f"No such file or directory: '{job}'" in job.with_suffix(".log").read_text()
    fifo = tmp_path / "waiting.json"
    os.mkfifo(fifo)  # a job that waits for its description for ever
    server.start(fifo)
    until(fifo.with_suffix(".log").exists)  # by then it has asked to end with the server
    assert server._process
    os.kill(server._process.pid, signal.SIGKILL)
    assert wait(server) == {fifo: -signal.SIGKILL}
    server.start(tmp_path / "next.json")
    assert wait(server) == {tmp_path / "next.json": 1}
