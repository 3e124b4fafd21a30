"""Processes that run `cli.py` without the ten seconds of a core that its imports take: forked from
one that has made the imports and computed nothing.

Each is a true process with a pid, signals, an exit code, a session, a working folder, an
environment and output of its own. What depends on how Python itself is started (paths, imports,
options) is tested on `python cli.py` instead.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from core.parent_process import FIRST
from tests.waiting import HANGS

ROOT = Path(__file__).parents[1]
# in the environment of a process: those that Lightning starts beside it are forked as well
FORKED_RANKS = "FORKED_RANKS"
PARENT = "PARENT"  # a word that becomes the pid of the server, whose children they are
LARGEST = 150_000  # bytes of a request, which are mostly its environment


def address(owner: int) -> str:
    """Where the server takes requests that was started by this process; Linux forgets such a name
    with the socket.
    """
    return f"\0plurality-tests-{owner}"


def start_server() -> None:
    """Start the process that all others are forked from; it ends with this one."""
    requests = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    requests.bind(address(os.getpid()))
    command = [sys.executable, "-m", "tests.warm_server", str(requests.fileno()), str(os.getpid())]
    # threads that wait for each other leave the cores to other tests
    patient = {
        **os.environ,
        "OMP_WAIT_POLICY": "passive",
    }
    process = subprocess.Popen(
        command, cwd=ROOT, env=patient, pass_fds=[requests.fileno()], stdin=subprocess.DEVNULL
    )
    requests.close()
    atexit.register(_stop, process)


def _stop(process: subprocess.Popen) -> None:
    with process:
        process.kill()


@cache
def server() -> socket.socket:
    """By which to ask for a process: of the server of who hands the tests out to several
    processes, else of an own one.
    """
    requests = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    atexit.register(requests.close)
    try:
        requests.connect(address(os.getppid()))
    except ConnectionRefusedError:
        start_server()
        requests.connect(address(os.getpid()))
    return requests


class Process:
    """A started `cli.py`, or another script of the project, as subprocess.Popen has it.

    Output for which no file is given is kept for `communicate`.
    """

    def __init__(
        self,
        words: Sequence[object],
        script: str = "cli.py",
        cwd: Path = ROOT,
        env: dict[str, str] | None = None,
        stdin: IO | int | None = None,
        stdout: IO | int | None = None,
        stderr: IO | int | None = None,
    ):
        self.args, self.returncode = [str(ROOT / script), *map(str, words)], None
        self._kept = [
            tempfile.TemporaryFile("w+") if file is None else None  # noqa: SIM115
            for file in (stdout, stderr)
        ]
        request = json.dumps(
            {"command": self.args, "cwd": str(cwd), "env": dict(os.environ if env is None else env)}
        ).encode()
        assert len(request) <= LARGEST
        # says the pid, and then the exit code
        self._end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, open(os.devnull) as nothing:
            output = self._kept[0] or stdout
            errors = output if stderr == subprocess.STDOUT else self._kept[1] or stderr
            files = [
                file if isinstance(file, int) else file.fileno()
                for file in (nothing if stdin is None else stdin, output, errors, theirs)
            ]
            socket.send_fds(server(), [request], files)
        self.pid = self._heard(HANGS)
        assert self.pid is not None, "it hangs"

    def _heard(self, timeout: float) -> int | None:
        """The next number that the server says of this process, unless it says none in this
        time.
        """
        if not select.select([self._end], [], [], timeout)[0]:
            return None
        message = self._end.recv(64)
        assert message, "the server that processes are forked from has ended"
        return int(message)

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._heard(0)
        return self.returncode

    def wait(self, timeout: float = HANGS) -> int:
        if self.returncode is None:
            self.returncode = self._heard(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        self._end.close()
        return self.returncode

    def communicate(self, timeout: float = HANGS) -> tuple[str, str]:
        """What it has said, after its end."""
        self.wait(timeout)
        messages = []
        for file in self._kept:
            if file:
                file.seek(0)
            messages.append(file.read() if file else "")
            if file:
                file.close()
        return messages[0], messages[1]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkedJobServer(Process):
    """What a study starts its jobs by (studies/launch/job_server.py), forked too: in place of
    `open_server`.
    """

    def __init__(self, environment: dict[str, str]):
        (theirs, to), (back, answers) = os.pipe(), os.pipe()
        super().__init__(
            [PARENT],
            "studies/launch/job_server.py",
            Path.cwd(),
            environment,
            theirs,
            answers,
            2,
        )
        os.close(theirs)
        os.close(answers)
        self.stdin, self.stdout = os.fdopen(to, "wb", 0), os.fdopen(back, "rb", 0)

    def __enter__(self) -> "ForkedJobServer":
        return self

    def __exit__(self, *error: object) -> None:
        self.stdin.close()
        self.stdout.close()
        self.wait()


def forked_rank(command: list[str], env: dict[str, str], cwd: str | None) -> Process:
    """What Lightning starts the other processes of a run by, in place of subprocess.Popen; they end
    with the server, whose children they are.
    """
    first = {name: value for name, value in env.items() if name != FIRST}
    return Process(command[2:], command[1], Path(cwd or Path.cwd()), first, stdout=1, stderr=2)


def run(
    words: Sequence[object], check: bool = False, timeout: float = HANGS, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run `cli.py` to its end."""
    process = Process(words, **options)
    output, errors = process.communicate(timeout)
    done = subprocess.CompletedProcess(process.args, process.wait(), output, errors)
    assert not check or done.returncode == 0, output + errors
    return done
