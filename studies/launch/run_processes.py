"""A run of a study on several devices: Lightning starts a process for each, so the run's commands
are given as a user would give them.
"""

import os
import signal
import subprocess
import sys
from typing import Any

import torch

from core.interruption import DIVERGED, Interrupted
from studies.launch.job_server import import_path
from studies.plan.places import PROJECT


def needs_processes(config: dict[str, Any]) -> bool:
    """Whether Lightning would start further processes for a run on this machine.

    >>> one = {"trainer": {"devices": "auto", "accelerator": "cpu"}}
    >>> needs_processes({"trainer": {"devices": 2}}), needs_processes(one)
    (True, False)
    """
    trainer = config["trainer"]
    devices, accelerator = trainer.get("devices", "auto"), trainer.get("accelerator") or "auto"
    if isinstance(devices, str) and devices not in ("auto", "-1"):
        devices = devices.strip(",").split(",") if "," in devices else int(devices)
    if devices in ("auto", "-1", -1):
        return accelerator in ("auto", "gpu", "cuda") and torch.cuda.device_count() > 1
    return (len(devices) if isinstance(devices, list) else devices) > 1


def run_in_processes(words: list[str]) -> bool:
    """Give a command of `cli.py`; returns whether it came to a result.

    What else ends it ends this job, with the same exit code.
    """
    environment = {**os.environ, "PYTHONPATH": import_path()}
    with subprocess.Popen([sys.executable, PROJECT / "cli.py", *words], env=environment) as command:
        try:
            code = command.wait()
        except Interrupted:
            command.send_signal(signal.SIGTERM)
            code = command.wait()
    if code not in (0, DIVERGED):
        sys.exit(code if code > 0 else 128 - code)
    return code == 0
