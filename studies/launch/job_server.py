"""Starts jobs without the seconds that importing torch and Lightning takes: one process imports
them once and forks for every job.

It computes nothing itself, so a forked job is as alone as a process started anew: it has memory, a
log and an exit code of its own, and nothing that one job does can reach another. The server ends
with its launcher, and every job with the server.

`multiprocessing`'s forkserver would not do: each of its jobs holds open the pipe by whose end it
learns of its launcher's, so after a SIGKILL of the launcher server and jobs went on. Nor is there a
public way to stop it, it takes a module that cannot be imported for one that was, and of a server
that was killed it reports 255. Its speed is no reason: on two busy cores, 20 jobs that end at
once took 2.3 to 5.9 s by this server and 2.5 to 3.4 s by that one.
"""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

from core.interruption import interrupt_on_signals
from core.parent_process import die_with_parent
from studies.launch.forked_process import end_after

SERVER = "studies.launch.job_server"
PAUSE = 0.05  # seconds between looks at jobs that may have ended


class JobServer:
    """The launcher's side: hand over jobs, and ask which have ended."""

    def __init__(self, threads: int):
        self._environment = {
            **os.environ,
            # numpy's; each job sets torch's itself, and OMP_NUM_THREADS would be a user's word
            "OPENBLAS_NUM_THREADS": str(threads),
            "PYTHONPATH": import_path(),
        }
        self._process: subprocess.Popen | None = None
        self._going: set[Path] = set()
        self._said = b""

    def start(self, job: Path) -> None:
        """Have a job done, described by this file; its log is written beside it."""
        if self._process is None:
            self._process = open_server(self._environment)
            os.set_blocking(self._process.stdout.fileno(), False)  # pyright: ignore[reportOptionalMemberAccess]
        self._going.add(job)
        with suppress(BrokenPipeError):  # a server that has died is seen by `ended`
            self._process.stdin.write(f"{job}\n".encode())  # pyright: ignore[reportOptionalMemberAccess]

    def ended(self) -> dict[Path, int]:
        """The exit codes of jobs that have ended since the last call; where the server itself has
        died, all of its jobs have.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        died = self._process.poll()
        self._said += self._process.stdout.read() or b""
        *lines, self._said = self._said.split(b"\n")
        pairs = (line.decode().split(" ", 1) for line in lines)
        result = {Path(path): int(code) for code, path in pairs}
        if died is not None:
            result |= dict.fromkeys(self._going - result.keys(), died or 1)
            self.kill()
        self._going -= result.keys()
        return result

    def kill(self) -> None:
        """Stop the server and all jobs at once."""
        if self._process:
            with self._process as process:  # closes its pipes and waits for its end
                process.kill()
        self._process, self._said = None, b""


def open_server(environment: dict[str, str]) -> subprocess.Popen:
    """Start the process that forks for every job; it ends with this one."""
    command = [sys.executable, "-P", "-m", SERVER, str(os.getpid())]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
    )


def import_path() -> str:
    """For PYTHONPATH: where this process imports from, so that its jobs run the same code and
    nothing of the working folder, wherever it was started.
    """
    return os.pathsep.join(os.path.abspath(folder) for folder in sys.path)


def serve(answers: TextIO) -> None:
    """Fork for every job named on the standard input, and answer how each ended, until the launcher
    closes the former.
    """
    server = os.getpid()
    going: dict[int, str] = {}
    rest = b""
    while True:
        if select.select([0], [], [], PAUSE)[0]:
            received = os.read(0, 65536)
            if not received:
                return
            *names, rest = (rest + received).split(b"\n")
            for name in names:
                child = os.fork()
                if not child:
                    answers.close()
                    _become(Path(name.decode()), server)
                going[child] = name.decode()
        for child in list(going):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                answers.write(f"{os.waitstatus_to_exitcode(status)} {going.pop(child)}\n")


def _become(path: Path, server: int) -> NoReturn:
    """Do a job in this process, with its output in the job's log, and exit."""
    from studies.launch.job import run

    die_with_parent(server)
    log = os.open(path.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    for stream, target in ((os.open(os.devnull, os.O_RDONLY), 0), (log, 1), (log, 2)):
        os.dup2(stream, target)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    interrupt_on_signals()
    end_after(lambda: run(path))


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what imports print must not be taken for an answer
    die_with_parent(int(sys.argv[1]))
    # Ctrl-C reaches all processes of a terminal; the launcher says so, and ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import relplot  # noqa: F401  # for every job's figures

    import experiment.plurality_cli  # noqa: F401
    import studies.launch.pack_job  # noqa: F401

    serve(answers)
