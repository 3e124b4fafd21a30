"""The GPUs of this machine and the jobs on them: one job to a GPU, and a job that names its devices
has all of them.
"""

import os

import torch

from studies.plan.packing import Job


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, by the words that CUDA_VISIBLE_DEVICES has for them.

    None of them is opened: the jobs do that, in processes of their own.
    """
    count = torch.cuda.device_count()
    listed = [word.strip() for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    return listed[:count] if any(listed) else [str(number) for number in range(count)]


class GpuSlots:
    """Which GPUs are free.

    >>> slots = GpuSlots(["0", "1"])
    >>> slots.take(Job([], packed=True, why=""))
    ''
    """

    def __init__(self, gpus: list[str]):
        self._all, self._free = gpus, list(gpus)
        self._taken: dict[str, list[str]] = {}  # by the names of jobs

    def take(self, job: Job) -> str | None:
        """The GPUs of a job that starts now, as CUDA_VISIBLE_DEVICES names them: "" where it may
        see what there is, None where it has to wait.
        """
        if job.device != "cuda" or not self._all:
            return ""
        wanted = 1 if job.takes_one_gpu else len(self._all)
        if len(self._free) < wanted:
            return None
        self._taken[job.name] = self._free[:wanted]
        del self._free[:wanted]
        return self._taken[job.name][0] if job.takes_one_gpu else ""

    def give_back(self, job: Job) -> None:
        """Of a job that has ended."""
        self._free += self._taken.pop(job.name, [])
