"""Runs a study's jobs on this machine: a few processes side by side, one progress bar, and failures told at the end."""

import errno
import fcntl
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from callbacks.results import has_ended
from studies.job import DIVERGED, write_job
from studies.packing import Job
from studies.study import Study


def launch(study: Study, jobs: list[Job], runs: Path, processes: int, threads: int, console: Console) -> list[str]:
    """Do all jobs that are not done; returns what failed, one line each."""
    folder = study_folder(study, runs)
    with only_one(folder, console):
        left = [job for job in jobs if not is_done(job, runs)]
        return _work_off(study, left, runs, folder, processes, threads, console)


def study_folder(study: Study, runs: Path) -> Path:
    return runs / ".studies" / study.name


def is_done(job: Job, runs: Path) -> bool:
    return all(has_ended(run.folder(runs)) for run in job.runs)


def _work_off(study: Study, left: list[Job], runs: Path, folder: Path, processes: int, threads: int, console: Console) -> list[str]:
    waiting, going, failures = list(left), {}, []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    total = sum(len(job.runs) for job in left)
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(study.name, total=total)
        finished = 0
        try:
            while waiting or going:
                while waiting and len(going) < processes:
                    job = waiting.pop(0)
                    path = write_job(job, folder, runs, study.predict, threads)
                    path.with_suffix(".progress").unlink(missing_ok=True)
                    going[_start(path, threads)] = job, path
                time.sleep(0.1)
                for process in [p for p in going if p.poll() is not None]:
                    job, path = going.pop(process)
                    finished += len(job.runs)
                    if process.returncode not in (0, DIVERGED):  # that runs diverged stands in their folders
                        failures.append(_failure(job, path, process.returncode))
                share = sum(len(job.runs) * _share(path) for job, path in going.values())
                bar.update(task, completed=finished + share)
        finally:
            for process in going:
                process.kill()
    return failures


def _start(path: Path, threads: int) -> subprocess.Popen:
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    with open(path.with_suffix(".log"), "w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "studies.job", str(path), str(os.getpid())], stdout=log, stderr=subprocess.STDOUT, env=environment
        )


def _share(path: Path) -> float:
    try:
        return float(path.with_suffix(".progress").read_text())
    except (OSError, ValueError):
        return 0.0


def _failure(job: Job, path: Path, code: int) -> str:
    log = path.with_suffix(".log")
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    said = os.strerror(code) if code == errno.ENOSPC else lines[-1] if lines else "no output"
    return f"{job.name} ({len(job.runs)} run(s)) ended with code {code}: {said} [log: {log}]"


@contextmanager
def only_one(folder: Path, console: Console):
    """Let one process at a time work on a study; a second one says whom it waits for."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            console.print(f"process {lock.read().strip()} is running this study; waiting for it to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
