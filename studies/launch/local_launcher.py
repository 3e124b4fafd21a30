"""Runs a study's jobs on this machine: a few processes side by side, one to each GPU, one progress
bar, and failures told at the end.
"""

import errno
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from core.folder_lock import folder_lock
from core.interruption import DIVERGED
from experiment.steps_left import steps_left
from studies.launch.gpu_slots import GpuSlots, visible_gpus
from studies.launch.job import write_job
from studies.launch.job_server import JobServer
from studies.plan.packing import Job
from studies.plan.study import Run, Study


def launch(
    study: Study, cut: Callable[[], list[Job]], runs: Path, processes: int, console: Console
) -> list[str]:
    """Do all jobs that are not done; returns what failed, one line each.

    They are cut when no other process works on the study.
    """
    folder = study_folder(study, runs)
    with hold_study(folder, console):
        jobs = cut()
        left = [job for job in jobs if not is_done(job, runs, study.predict)]
        return _work_off(study, left, runs, folder, processes, threads_of(jobs, processes), console)


def study_folder(study: Study, runs: Path) -> Path:
    """Where a study keeps the descriptions, logs and states of its jobs."""
    return runs / ".studies" / study.name


def threads_of(jobs: list[Job], processes: int) -> int:
    """Threads of each process, so that together they are as many as there are cores."""
    return max(1, (os.cpu_count() or 1) // min(processes, len(jobs)))


def hold_study(folder: Path, console: Console) -> AbstractContextManager[None]:
    """Let one process at a time work on a study, on this machine or through Slurm."""
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    return folder_lock(folder, "runs this study", say=say)


def is_done(job: Job, runs: Path, predict: bool) -> bool:
    """Whether nothing is left to do for any run of a job."""
    return all(is_run_done(run, runs, predict) for run in job.runs)


def is_run_done(run: Run, runs: Path, predict: bool) -> bool:
    """Whether nothing is left to do for a run."""
    return not steps_left(run.config, run.folder(runs), predict)


def _work_off(
    study: Study,
    left: list[Job],
    runs: Path,
    folder: Path,
    processes: int,
    threads: int,
    console: Console,
) -> list[str]:
    waiting, going, failures = list(left), {}, []
    server, slots = JobServer(threads), GpuSlots(visible_gpus())
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    total = sum(len(job.runs) for job in left)
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(study.name, total=total)
        finished = 0
        try:
            while waiting or going:
                for job in list(waiting):
                    if len(going) == processes or (gpu := slots.take(job)) is None:
                        continue
                    waiting.remove(job)
                    path = write_job(job, folder, runs, study.predict, threads, gpu=gpu)
                    for rest in (".progress", ".log"):  # of an earlier attempt
                        path.with_suffix(rest).unlink(missing_ok=True)
                    going[path] = job
                    server.start(path)
                time.sleep(0.1)
                for path, code in server.ended().items():
                    job = going.pop(path)
                    slots.give_back(job)
                    ended = sum(is_run_done(run, runs, study.predict) for run in job.runs)
                    finished += ended
                    # that runs diverged stands in their folders
                    if code not in (0, DIVERGED) or ended < len(job.runs):
                        failures.append(_failure(job, path, code))
                share = sum(len(job.runs) * _share(path) for path, job in going.items())
                bar.update(task, completed=finished + share)
        finally:
            server.kill()
    return failures


def _share(path: Path) -> float:
    try:
        return float(path.with_suffix(".progress").read_text())
    except (OSError, ValueError):
        return 0.0


def _failure(job: Job, path: Path, code: int) -> str:
    log = path.with_suffix(".log")
    text = log.read_text(errors="replace") if log.exists() else ""
    lines = [line for line in text.splitlines() if line.strip()]
    message = os.strerror(code) if code == errno.ENOSPC else lines[-1] if lines else "no output"
    return f"{job.name} ({len(job.runs)} run(s)) ended with code {code}: {message} [log: {log}]"
