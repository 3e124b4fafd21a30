"""A job of a study, done in a process of its own: it ends with its parent, holds its runs, and writes its progress."""

import ctypes
import errno
import fcntl
import json
import math
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from callbacks.history import Epochs, read_history
from callbacks.results import has_ended, write_failure
from errors import mistake_behind
from kept_files import remove_rests, write_atomically
from studies.packing import Job
from studies.study import Run

DIVERGED = 3  # how a job's process ends of which some runs failed in a way that trying again would not mend


def write_job(job: Job, folder: Path, runs: Path, predict: bool, threads: int, devices: int = 1) -> Path:
    """Describe a job for the process that will do it; `devices` is the number of processes that share a run with DDP."""
    listed = [{"name": run.name, "config": run.config, "factors": run.factors} for run in job.runs]
    content = {
        "runs": listed,
        "packed": job.packed,
        "folder": str(runs),
        "predict": predict,
        "threads": threads,
        "devices": devices,
        "why": job.why,
    }
    path = folder / f"{job.name}.json"
    write_atomically(path, json.dumps(content))
    return path


def do_job(path: Path) -> dict[str, str]:
    """Do what is left of a job; returns the failures by run name."""
    content = json.loads(path.read_text())
    torch.set_num_threads(content["threads"])
    runs, folder = [Run(**run) for run in content["runs"]], Path(content["folder"])
    with ExitStack() as stack:
        for run in sorted(runs, key=lambda run: run.name):
            if os.environ.get("SLURM_PROCID", "0") == "0":  # the other processes of a DDP run come along with the first
                stack.enter_context(hold(run.folder(folder)))
        if all(has_ended(run.folder(folder)) for run in runs):
            return {}
        if content["packed"]:
            from studies.pack_job import run_pack

            remove_rests(path.parent, f"{path.stem}.pt.*")
            return run_pack(runs, folder, path.with_suffix(".pt"), content["predict"], lambda share: report(path, share))
        return run_alone(runs[0], folder, content["predict"], content["devices"])


def run_alone(run: Run, folder: Path, predict: bool, devices: int) -> dict[str, str]:
    """One run through Lightning, continued from its own checkpoint where there is one."""
    from studies.configuration import write_config
    from studies.single_run import run_command

    options = ["--config", str(write_config(run.config, run.folder(folder))), "--trainer.default_root_dir", str(folder)]
    options += ["--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false"]
    if devices > 1:
        options += ["--trainer.devices", str(devices), "--trainer.strategy", "ddp"]
    for command in ("fit", "test", *(["predict"] if predict else [])):
        run_command([command, *options])
        if command == "fit" and (reason := divergence(read_history(run.folder(folder)) or [])):
            write_failure(run.folder(folder), reason)
            return {run.name: reason}
    return {}


def divergence(epochs: Epochs) -> str:
    """Why a training has no result, in the words of a pack; empty where all its losses are finite numbers.

    >>> divergence([{"epoch": 0, "train/loss": 1.5, "val/loss": 1.2}, {"epoch": 1, "train/loss": float("nan"), "val/loss": 1.3}])
    'its loss was nan in epoch 1'
    """
    losses = ((int(row["epoch"]), row[name]) for row in epochs for name in ("train/loss", "val/loss") if name in row)
    return next((f"its loss was {loss:g} in epoch {epoch}" for epoch, loss in losses if not math.isfinite(loss)), "")


class hold:
    """Hold a run's folder against other processes, also of other studies; released when the process ends, however it ends."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._file = folder, open(folder / ".lock", "w")  # noqa: SIM115

    def __enter__(self):
        fcntl.flock(self._file, fcntl.LOCK_EX)
        remove_rests(self._folder)

    def __exit__(self, *error: Any):
        self._file.close()


def report(path: Path, share: float) -> None:
    path.with_suffix(".progress").write_text(f"{share:.4f}")


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its launcher ends, so that no orphan goes on writing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit("the launcher has ended")


def run(path: Path) -> int:
    """Do a job and say how it ended: the exit code of its process, with a sentence for the log where it failed."""
    try:
        failures = do_job(path)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            os._exit(errno.ENOSPC)  # the log lies on the same disk, so the code must tell
        mistake = mistake_behind(error)
        if mistake is None:
            raise
        print(f"error: {mistake}", file=sys.stderr)
        return 1
    for name, reason in failures.items():
        print(f"failed: {name}: {reason}")
    return DIVERGED if failures else 0
