"""The process that those of tests/processes.py are forked from: `python -m tests.warm_server
REQUESTS PARENT`, a socket and a pid.

It imports what commands and jobs import, and computes nothing, as studies/launch/job_server.py does
for jobs.
"""

import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import warnings
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import sklearn.datasets  # noqa: F401  # which is imported late, and so would be by every child
import torch.utils.tensorboard
from lightning.pytorch.strategies.launchers import subprocess_script

import experiment.plurality_cli  # noqa: F401
import studies.commands
import studies.launch.job_server
import studies.launch.pack_job
from core.parent_process import die_with_parent
from studies.launch.forked_process import end_after
from tests import processes


def serve(requests: socket.socket) -> None:
    """Fork for every request, and tell its sender the pid and later the exit code."""
    # by the file that says that it has ended: its pid, and where to tell
    going: dict[int, tuple[int, socket.socket]] = {}
    address = requests.getsockname()
    while True:
        for ready in select.select([requests, *going], [], [])[0]:
            if ready is not requests:
                pid, sender = going.pop(ready)
                os.close(ready)
                _tell(sender, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                sender.close()
                continue
            request, files, _, _ = socket.recv_fds(requests, processes.LARGEST, 4)
            server, pid = os.getpid(), os.fork()
            if not pid:
                for file, other in going.items():
                    os.close(file)
                    other[1].close()
                requests.close()
                _become(json.loads(request), files, server, address)
            for file in files[:3]:
                os.close(file)
            sender = socket.socket(fileno=files[3])
            _tell(sender, pid)
            going[os.pidfd_open(pid)] = pid, sender


def _tell(sender: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # who has asked for the process has ended
        sender.send(str(number).encode())


def _become(request: dict[str, Any], files: list[int], server: int, address: bytes) -> None:
    """Be the process that was asked for, as if Python had been started for it, and exit.

    It may ask for processes too.
    """
    die_with_parent(server)
    os.setsid()
    for target, file in enumerate(files[:3]):
        os.dup2(file, target)
    for file in files:
        os.close(file)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    np.random.seed()  # noqa: NPY002  # a new process has a state of its own
    if "OMP_NUM_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if "PYTHONWARNINGS" in os.environ:
        # one of its actions
        warnings.simplefilter(os.environ["PYTHONWARNINGS"])  # pyright: ignore[reportArgumentType]
    sys.argv = [str(server) if word == processes.PARENT else word for word in request["command"]]
    client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    client.connect(address)
    processes.server = lambda: client
    studies.launch.job_server.open_server = processes.ForkedJobServer
    if os.environ.pop(processes.FORKED_RANKS, None):
        subprocess_script.subprocess = SimpleNamespace(Popen=processes.forked_rank)
    # also the end of a job that a job server has forked meanwhile
    end_after(run_script)


def run_script() -> None:
    """The script that `sys.argv` names, as `python` would run it."""
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    die_with_parent(int(sys.argv[2]))
    # Ctrl-C reaches all processes of a terminal; who runs the tests ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # or looking for garbage would copy all of it in each child
    serve(socket.socket(fileno=int(sys.argv[1])))
