"""What `study plan` says of jobs: how and where each will be done, why, and at what cost."""

from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from studies.launch.local_launcher import is_done, is_run_done, threads_of
from studies.plan.cost import in_words, seconds, where_bfloat16_pays
from studies.plan.packing import Job


def tell_jobs(
    title: str,
    predict: bool,
    jobs: list[Job],
    runs: Path,
    processes: int,
    gpus: int,
    console: Console,
) -> None:
    """A table of jobs, and what is left of them."""
    threads = threads_of(jobs, processes)
    table = Table(title=f"{title}: {sum(len(job.runs) for job in jobs)} runs", title_justify="left")
    for heading in ("job", "runs", "done", "how", "device", "why"):
        table.add_column(heading, justify="right" if heading in ("runs", "done") else "left")
    packs = [job for job in jobs if job.packed]
    for job in packs:
        done = str(sum(is_run_done(run, runs, predict) for run in job.runs))
        how, where = "packed in one process", device_in_words(job, gpus)
        table.add_row(job.name, str(len(job.runs)), done, how, where, job.why)
    alone = [job for job in jobs if not job.packed]
    reasons = Counter((job.why, device_in_words(job, gpus)) for job in alone)
    for (why, where), count in reasons.items():
        same = [job for job in alone if (job.why, device_in_words(job, gpus)) == (why, where)]
        done = str(sum(is_done(job, runs, predict) for job in same))
        table.add_row("one by one", str(count), done, "one process per run", where, why)
    console.print(table)
    left = [job for job in jobs if not is_done(job, runs, predict)]
    undone = sum(not is_run_done(run, runs, predict) for job in left for run in job.runs)
    console.print(
        f"{undone} runs are left to do in {len(left)} jobs, "
        f"{processes} at a time with {threads} thread(s) each. "
        f"{cost_in_words(left, len(jobs), processes, threads)}{where_bfloat16_pays(left)}",
        soft_wrap=True,
        highlight=False,
    )


def device_in_words(job: Job, gpus: int) -> str:
    """Where a job will run, of so many GPUs that jobs may have.

    >>> job = Job([], packed=True, why="", device="cuda")
    >>> device_in_words(job, 0)
    'a GPU; none is here'
    """
    if job.device == "cpu":
        return "CPU"
    if not gpus:
        return "a GPU; none is here"
    if not job.takes_one_gpu:
        return "the GPUs that it names"
    return "GPU" if gpus == 1 else f"one of {gpus} GPUs"


def cost_in_words(left: list[Job], jobs: int, processes: int, threads: int) -> str:
    """What is left will cost, as far as that is known of CPUs."""
    on_cpu = [job for job in left if job.device == "cpu"]
    if left and not on_cpu:
        return "Their cost on a GPU is not estimated; --calibrate measures it."
    costs = [seconds(job, threads) for job in on_cpu]
    known = [cost for cost in costs if cost is not None]
    cost = (
        in_words(max([sum(known) / min(processes, jobs), *known], default=0))
        if len(known) == len(costs)
        else "unknown, the data is not here"
    )
    rest = "" if len(on_cpu) == len(left) else " of the jobs on it"
    return f"Expected cost{rest} on this machine's CPU: {cost} (an estimate from the arithmetic)."
