"""Jobs forked from one process: each is alone, its end is told, and a server that dies takes nothing with it but its own jobs."""

import os
import signal
import time
from pathlib import Path

import pytest

from studies.job_server import JobServer


def wait(server: JobServer, seconds: float = 120) -> dict[Path, int]:
    start = time.monotonic()
    while not (ended := server.ended()):
        assert time.monotonic() - start < seconds
        time.sleep(0.05)
    return ended


@pytest.fixture(scope="module")
def server():
    server = JobServer(threads=1)
    yield server
    server.kill()


def test_a_job_that_fails_has_its_own_log_and_code(server: JobServer, tmp_path: Path):
    jobs = [tmp_path / f"job {n}.json" for n in range(3)]
    for job in jobs:
        server.start(job)
    codes: dict[Path, int] = {}
    while len(codes) < len(jobs):
        codes |= wait(server)
    assert codes == dict.fromkeys(jobs, 1)
    for job in jobs:
        assert f"No such file or directory: '{job}'" in job.with_suffix(".log").read_text()


def test_when_the_server_is_killed_its_jobs_have_ended_and_the_next_one_starts_another(server: JobServer, tmp_path: Path):
    server.start(tmp_path / "first.json")
    wait(server)
    assert server._process
    fifo = tmp_path / "second.json"
    os.mkfifo(fifo)  # a job that waits for its description for ever
    server.start(fifo)
    time.sleep(0.3)
    os.kill(server._process.pid, signal.SIGKILL)
    assert wait(server) == {fifo: -signal.SIGKILL}
    server.start(tmp_path / "third.json")
    assert wait(server) == {tmp_path / "third.json": 1}
