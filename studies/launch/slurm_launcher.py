"""Runs a study's jobs on a Slurm cluster: one job array through submitit, one pack or one run per
task, safe to requeue and to give again.
"""

import logging
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from core.atomic_io import write_atomically
from core.errors import InputError
from studies.launch.job import do_job, write_job
from studies.launch.job_server import import_path
from studies.launch.local_launcher import hold_study, is_done, study_folder
from studies.plan.packing import Job
from studies.plan.study import Study

POLL = 1.0  # seconds between two looks at the queue


@dataclass(frozen=True)
class ClusterOptions:
    """What a user says of the cluster; everything else is Slurm's own default."""

    partition: str | None = None
    max_parallel: int = 256
    hours: float = 24.0
    cpus: int = 1
    gpus: int = 0
    tasks: int = 1  # processes of one run: more than one for DDP


class Task:
    """What a task of the array does.

    All state lies in the run's folder, so being started again is all that a requeue needs.
    """

    def __call__(self, path: str) -> dict[str, str]:
        """Do what is left of the job that a file describes."""
        return do_job(Path(path))

    def checkpoint(self, path: str):
        """submitit calls this when the job is preempted or about to time out."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, path)


def launch_on_slurm(
    study: Study,
    cut: Callable[[], list[Job]],
    runs: Path,
    options: ClusterOptions,
    console: Console,
) -> list[str]:
    """Submit what is left as one array, wait for it, and return what failed.

    Jobs of an earlier array that are still queued are waited for.
    """
    folder = study_folder(study, runs)
    with hold_study(folder, console):
        wait_for(earlier_array(folder), study, cut(), runs, console)
        jobs = cut()  # what that array has begun goes on as it is
        left = [job for job in jobs if not is_done(job, runs, study.predict)]
        if left:
            array = submit(study, left, runs, folder, options)
            console.print(f"submitted {len(left)} task(s) as job array {array}")
            wait_for(array, study, jobs, runs, console)
        return [
            f"{job.name} ({len(job.runs)} run(s)) has no results; see {folder / 'slurm'}"
            for job in jobs
            if not is_done(job, runs, study.predict)
        ]


def submit(study: Study, left: list[Job], runs: Path, folder: Path, options: ClusterOptions) -> str:
    """Queue the jobs as one array; returns its number."""
    try:
        import submitit
        from submitit.core.utils import FailedJobError
    except ImportError as error:
        raise InputError(
            'the slurm launcher needs submitit; install it with: pip install -e ".[slurm]" -c '
            "constraints.txt"
        ) from error
    # it complains at every poll of a cluster without accounting
    logging.getLogger("submitit").setLevel(logging.ERROR)
    packs = [job.name for job in left if job.packed]
    if packs and options.tasks > 1:
        raise InputError(
            f"--tasks is {options.tasks}, but {packs[0]} is a pack, which is one process; use "
            "--tasks for studies of runs that do not pack."
        )
    if packs and options.gpus > 1:
        raise InputError(
            f"--gpus is {options.gpus}, but {packs[0]} is a pack, which trains on one GPU; use "
            "--gpus 1, and each pack of the array has a GPU of its own."
        )
    paths = [
        str(write_job(job, folder, runs.resolve(), study.predict, options.cpus, options.tasks))
        for job in left
    ]
    logs = folder / "slurm" / "%A"
    executor = submitit.AutoExecutor(folder=logs, cluster="slurm", slurm_python=sys.executable)
    executor.update_parameters(
        name=f"plurality-{study.name}",
        # submitit takes every signal for a time-out in jobs of 10 minutes or less
        timeout_min=max(11, int(options.hours * 60)),
        cpus_per_task=options.cpus,
        tasks_per_node=options.tasks,
        slurm_array_parallelism=options.max_parallel,
        slurm_setup=[f"export PYTHONPATH={shlex.quote(import_path())}"],
        **({"slurm_partition": options.partition} if options.partition else {}),
        **gpu_options(options),
    )
    try:
        tasks = executor.map_array(Task(), paths)
    except FailedJobError as error:
        raise InputError(
            f"Slurm refused the jobs: {str(error).strip().splitlines()[-1]}"
        ) from error
    array = tasks[0].job_id.split("_")[0]
    write_atomically(folder / "array", array)
    return array


def gpu_options(options: ClusterOptions) -> dict[str, int]:
    """Of submitit: GPUs that a process sees alone, or, of a run with DDP, that its processes share
    and choose from by their local rank.

    >>> gpu_options(ClusterOptions(gpus=1)), gpu_options(ClusterOptions(gpus=4, tasks=4))
    ({'slurm_gpus_per_task': 1}, {'gpus_per_node': 4})
    """
    if not options.gpus:
        return {}
    return {"slurm_gpus_per_task" if options.tasks == 1 else "gpus_per_node": options.gpus}


def earlier_array(folder: Path) -> str | None:
    """The number of the array that was queued last for a study."""
    return (folder / "array").read_text().strip() if (folder / "array").exists() else None


def wait_for(
    array: str | None, study: Study, jobs: list[Job], runs: Path, console: Console
) -> None:
    """Wait until no task of the array is queued any more.

    The queue is asked, not submitit: without accounting it never learns of a killed job.
    """
    if array is None:
        return
    columns = (
        TextColumn("job array {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(array, total=sum(len(job.runs) for job in jobs))

        def show_progress() -> None:
            done = [job for job in jobs if is_done(job, runs, study.predict)]
            bar.update(task, completed=sum(len(job.runs) for job in done))

        while queued(array):
            show_progress()
            time.sleep(POLL)
        show_progress()


def queued(array: str) -> bool:
    """Whether any task of the array is pending, running or being requeued."""
    command = ["squeue", "--noheader", "--array", "--format=%T", f"--jobs={array}"]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode and "Invalid job id" in answer.stderr:
        return False
    return bool(answer.returncode or answer.stdout.strip())
