"""Which jobs of a study go on as they began, also where the study is continued with another number
of processes or with more runs.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from callbacks.results import has_ended
from core.read_json import read_json
from experiment.checkpoints import before
from experiment.run_checkpoints import last_checkpoint
from lightning_modules.packed.pack_device import device_of
from studies.plan.packing import Job, why_unpackable
from studies.plan.study import Run


def begun_jobs(folder: Path, cells: Sequence[Run], runs: Path, gpus: int = 0) -> list[Job]:
    """The jobs that would lose something if they were cut anew: a saved state, or that members have
    already ended beside the others.

    Each keeps its members in their order and its number of threads, and so its arithmetic, to the
    last bit; on another device than it began on, up to rounding. A run that began alone stays
    alone, also where runs like it are packed now. `folder` is the study's own, where a job is
    described when it starts; `cells` are the runs that there are to do, of which a job must have
    all. Of jobs that share runs, because a study was changed and changed back, one with a saved
    state counts before others, and one of more runs before smaller ones.
    """
    present = {run.name: run for run in cells}
    result = []
    for path in sorted(folder.glob("*.json")):
        job = _described(read_json(path), present, gpus)
        if job and job.name == path.stem:
            saved = _has_state(job, path.with_suffix(".pt"), runs)
            if saved or (job.packed and any(has_ended(run.folder(runs)) for run in job.runs)):
                result.append((not saved, -len(job.runs), job.name, job))
    kept: dict[str, Job] = {}  # by the runs of each
    for *_, job in sorted(result):
        if kept.keys().isdisjoint(run.name for run in job.runs):
            kept |= dict.fromkeys((run.name for run in job.runs), job)
    return list({job.name: job for job in kept.values()}.values())


def _described(content: Any, present: dict[str, Run], gpus: int) -> Job | None:
    """The job of a description, made of runs that are present; None where it is damaged, or of
    other runs or another way to do them.
    """
    try:
        packed, threads = content["packed"], content["threads"]
        runs = [present[run["name"]] for run in content["runs"]]
    except (KeyError, TypeError):
        return None
    if not runs or type(threads) is not int or threads < 1:
        return None
    if packed and any(why_unpackable(run.config) for run in runs):
        return None
    device = device_of(runs[0].config["trainer"], gpus)
    return Job(runs, packed, "goes on as it began", min(threads, os.cpu_count() or 1), device)


def _has_state(job: Job, state: Path, runs: Path) -> bool:
    last = state if job.packed else last_checkpoint(job.runs[0].folder(runs))
    return last.exists() or before(last).exists()
