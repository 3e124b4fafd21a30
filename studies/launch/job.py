"""A job of a study, done in a process of its own: it ends with its parent, holds its runs, and
writes its progress.
"""

import errno
import json
import os
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import torch

from callbacks.results import read_failure
from core.atomic_io import remove_partial_files, write_atomically
from core.errors import full_disk, mistake_behind
from core.folder_lock import folder_lock
from core.interruption import DIVERGED, Interrupted, is_first_process
from experiment.run_checkpoints import run_files
from experiment.steps_left import steps_left
from studies.launch.run_processes import needs_processes, run_in_processes
from studies.plan.packing import Job
from studies.plan.study import Run


def write_job(
    job: Job,
    folder: Path,
    runs: Path,
    predict: bool,
    threads: int,
    devices: int = 1,
    gpu: str = "",
) -> Path:
    """Describe a job for the process that will do it; `devices` is the number of processes that
    share a run with DDP, and `gpu` the only one that it may see.
    """
    listed = [{"name": run.name, "config": run.config, "factors": run.factors} for run in job.runs]
    content = {
        "runs": listed,
        "packed": job.packed,
        "folder": str(runs),
        "predict": predict,
        "threads": job.threads or threads,
        "devices": devices,
        "gpu": gpu,
        "why": job.why,
    }
    path = folder / f"{job.name}.json"
    write_atomically(path, json.dumps(content))
    return path


def do_job(path: Path) -> dict[str, str]:
    """Do what is left of a job; returns the failures by run name."""
    content = json.loads(path.read_text())
    torch.set_num_threads(content["threads"])
    if content.get("gpu"):  # before anything has opened one
        os.environ["CUDA_VISIBLE_DEVICES"] = content["gpu"]
    runs, folder = [Run(**run) for run in content["runs"]], Path(content["folder"])
    with ExitStack() as stack:
        for run in sorted(runs, key=lambda run: run.name):
            # those that train it in processes of their own hold it themselves
            if is_first_process() and not needs_processes(run.config):
                stack.enter_context(folder_lock(run.folder(folder), "trains this run in a study"))
                remove_partial_files(*run_files(run.folder(folder)))

        def what_is_left() -> dict[str, list[str]]:
            predict = content["predict"]
            return {run.name: steps_left(run.config, run.folder(folder), predict) for run in runs}

        left, failures = what_is_left(), {}
        if content["packed"] and any("fit" in steps for steps in left.values()):
            from studies.launch.pack_job import run_pack

            remove_partial_files(path.parent, of=f"{path.stem}.pt")
            state = path.with_suffix(".pt")
            failures = run_pack(runs, folder, state, content["predict"], partial(report, path))
            left = what_is_left()
        # of a pack, what is left when its members are trained: a probe or predictions that were not
        # asked for before
        for run in runs:
            failures |= run_alone(run, folder, left[run.name], content["devices"])
        return failures


def run_alone(run: Run, folder: Path, steps: list[str], devices: int) -> dict[str, str]:
    """One run through Lightning, continued from its own checkpoint where there is one; returns why
    it has no result, by its name.
    """
    if not steps:
        return {}
    from experiment.configuration import write_config
    from experiment.plurality_cli import run_command

    config = write_config(run.config, run.folder(folder))
    options = ["--config", str(config), "--trainer.default_root_dir", str(folder)]
    options += ["--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false"]
    if devices == 1 and needs_processes(run.config):
        for command in steps:
            if not run_in_processes([command, *options]):
                return {run.name: read_failure(run.folder(folder)) or "its training diverged"}
        return {}
    if devices > 1:
        options += ["--trainer.devices", str(devices), "--trainer.strategy", "ddp"]
    for command in steps:
        done = run_command([command, *options])
        if command == "fit" and done.training and done.training.diverged:
            return {run.name: done.training.reason}
    return {}


def report(path: Path, share: float) -> None:
    """Leave word of how much of a job is done."""
    path.with_suffix(".progress").write_text(f"{share:.4f}")


def run(path: Path) -> int:
    """Do a job and say how it ended: the exit code of its process, with a sentence for the log
    where it failed.
    """
    try:
        failures = do_job(path)
    except Interrupted as stop:
        print(stop.line())
        return stop.code
    except Exception as error:
        if full_disk(error):
            os._exit(errno.ENOSPC)  # the log lies on the same disk, so the code must tell
        mistake = mistake_behind(error)
        if mistake is None:
            raise
        print(f"error: {mistake}", file=sys.stderr)
        return 1
    for name, reason in failures.items():
        print(f"failed: {name}: {reason}")
    return DIVERGED if failures else 0
