"""Killed and continued with fewer or more processes, a run ends as one that a single process
trained throughout.
"""

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.devices.both import (
    OPTIONS,
    PROBES,
    ROOT,
    Trained,
    cli,
    largest_difference,
    read_run,
    start,
    write_callbacks,
)
from tests.devices.test_two_processes import MIXUP
from tests.waiting import HANGS

# how many processes, and the epoch and step at which they are killed
LEGS = [
    (2, "1 5"),
    (1, "2 9"),
    (2, "4 0"),
    (3, "5 1"),
    (2, None),
]
PLATEAU = (
    '{"class_path": "torch.optim.lr_scheduler.ReduceLROnPlateau", "init_args": {"patience": '
    '0, "factor": 0.5}}'
)


def devices(processes: int) -> list[str]:
    return [
        "--trainer.devices",
        str(processes),
        *(["--trainer.strategy", "ddp"] if processes > 1 else []),
    ]


def killed(options: list[str], processes: int, at: str) -> None:
    """Start a run and have it killed; its other processes end with the first."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "KILL_AT": at}
    command = cli("fit", *options, *devices(processes))
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]


def check_items(run: Trained, legs: list[tuple[int, str | None]], epochs: int) -> None:
    """Each item once in every epoch, over all processes of the leg that came to its end."""
    ends = [int(at.split()[0]) if at else epochs for _, at in legs]
    assert ends == sorted(ends)
    for epoch in range(epochs):
        ranks = next(
            processes for (processes, _), end in zip(legs, ends, strict=True) if epoch < end
        )
        parts = [
            torch.load(run.folder / f"epoch_{epoch}_rank_{rank}_of_{ranks}.pt")
            for rank in range(ranks)
        ]
        assert len(torch.cat(parts)) == len(torch.cat(parts).unique()) == 97


@pytest.mark.long
def test_killed_and_continued_with_other_numbers_of_processes(tmp_path: Path):
    epochs = 7
    options = [
        *OPTIONS,
        "--config",
        str(write_callbacks(tmp_path, PROBES)),
        "--data.delivery",
        MIXUP,
        "--model.scheduler",
        PLATEAU,
    ]
    options += [
        "--trainer.callbacks+=EarlyStopping",
        "--trainer.callbacks.monitor",
        "val/loss",
        "--trainer.callbacks.patience",
        "20",
    ]
    # 10 batches an epoch, the last of 7 items: neither is a number that 2 or 3 processes divide
    # evenly.
    options += [
        "--trainer.precision",
        "64-true",
        "--trainer.max_epochs",
        str(epochs),
        "--data.batch_size",
        "10",
    ]
    here = [*options, "--trainer.default_root_dir", str(tmp_path / "killed")]
    for processes, at in LEGS:
        if at:
            killed(here, processes, at)
        else:
            for command in ("fit", "test"):
                start(*cli(command, *here, *devices(processes)))
    for command in ("fit", "test"):
        start(*cli(command, *options, "--trainer.default_root_dir", tmp_path / "whole"))
    one, many = read_run(tmp_path / "whole"), read_run(tmp_path / "killed")
    check_items(many, LEGS, epochs)
    for rank in many.ranks:
        assert largest_difference(one.ranks[0]["weights"], rank["weights"]) < 1e-10
    for epoch, same in zip(one.history, many.history, strict=True):
        assert same == pytest.approx(epoch, rel=1e-9, abs=1e-9)
    records = [np.fromfile(run.folder / "cartography_train.f32", "<f4") for run in (one, many)]
    np.testing.assert_allclose(records[1], records[0], rtol=1e-6, atol=1e-6)
    assert many.results["metrics"] == pytest.approx(one.results["metrics"], rel=1e-6, abs=1e-6)
    assert len({epoch["lr"] for epoch in one.history}) > 1, (
        "the plateau was not seen, so its state was not tried"
    )
