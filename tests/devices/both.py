"""One short training and test, made by any number of processes however they are started, and what
to compare of it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import yaml

from tests import processes
from tests.callbacks.patches import write_noise
from tests.waiting import HANGS

ROOT = Path(__file__).parents[2]
# 97 training items in batches of 8: the last batch of an epoch is a single item. LeNet has neither
# dropout, which is drawn per process, nor BatchNorm.
OPTIONS = [
    "--config", str(ROOT / "configs/digits.yaml"),
    "--data", "tests.devices.odd_digits.OddDigits",
    "--data.batch_size", "8",
    "--model.network", "LeNet",
    "--trainer.max_epochs", "2",
    "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
]  # fmt: skip
PROBES = {
    "HessianSpectrum": {"trace_tolerance": 0.2, "most_products": 25},
    "GradientVariance": {},
    "TrainingDynamics": {},
    "DataCartography": {},
    "StratumScores": {},
    "EpochScores": {},
}


class Trained(NamedTuple):
    """The files of one run."""

    ranks: list[dict[str, Any]]  # what `Recorder` wrote, process by process
    history: list[dict[str, float]]
    results: dict[str, Any]  # empty where no test was made
    folder: Path


def read_run(root: Path) -> Trained:
    (folder,) = (path.parent for path in root.glob("*/rank_0.pt"))
    ranks = [torch.load(path, weights_only=True) for path in sorted(folder.glob("rank_*.pt"))]
    results = folder / "results.json"
    return Trained(
        ranks,
        json.loads((folder / "history.json").read_text()),
        json.loads(results.read_text()) if results.exists() else {},
        folder,
    )


def write_callbacks(folder: Path, probes: Collection[str] = ()) -> Path:
    """A YAML with the recorder and these probes; one set of images of the OOD scores is there and
    another is not.
    """
    sets = {"noise": write_noise(folder), "absent": str(folder / "absent.idx")}
    every = {**PROBES, "OODScores": {"k": 5, "sets": sets}}
    chosen = {name: every[name] for name in probes}
    entries = [
        {"class_path": name, "init_args": more}
        for name, more in {"tests.devices.recorder.Recorder": {}, **chosen}.items()
    ]
    path = folder / "callbacks.yaml"
    path.write_text(yaml.safe_dump({"trainer": {"callbacks": entries}}))
    return path


def start(*command: str | Path, forked_ranks: bool = False) -> None:
    """Run a command from the project's folder, one thread in each of its processes, and show what
    it said where it fails.

    With `forked_ranks`, what Lightning starts beside it costs no imports.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if forked_ranks:
        environment[processes.FORKED_RANKS] = "1"
    if [*command[:2]] == cli():
        done = processes.run(command[2:], env=environment)
    else:
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            timeout=HANGS,
            cwd=ROOT,
            env=environment,
        )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def cli(*words: str | Path) -> list[str]:
    return [sys.executable, str(ROOT / "cli.py"), *map(str, words)]


def python_module(*words: str) -> list[str]:
    return [sys.executable, "-m", *words]


def largest_difference(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> float:
    assert one.keys() == two.keys()
    return max((one[name] - two[name]).abs().max().item() for name in one)


def check_targets(one: Trained, two: Trained) -> None:
    """In every step, each of two processes has every other item of the one's batch, with the same
    targets.
    """
    assert [rank["ranks"] for rank in two.ranks] == [2, 2]
    for whole, first, second in zip(
        one.ranks[0]["steps"], *(rank["steps"] for rank in two.ranks), strict=True
    ):
        assert whole[:2] == first[:2] == second[:2]  # epoch and step
        for part in (2, 3):  # items and their targets
            assert torch.equal(whole[part][0::2], first[part])
            assert torch.equal(whole[part][1::2], second[part])
    assert any(len(step[2]) == 0 for step in two.ranks[1]["steps"]), (
        "no share was empty, so this case was not tried"
    )


def check_items(two: Trained) -> None:
    """Over both processes, each item comes once per epoch."""
    steps = [step for rank in two.ranks for step in rank["steps"]]
    for epoch in range(2):
        items = torch.cat([step[2] for step in steps if step[0] == epoch])
        assert len(items) == len(items.unique()) == 97


def check_gradients(one: Trained, two: Trained) -> None:
    """In double precision, the gradients of every step and the weights at the end are those of one
    process to rounding.
    """
    assert len(one.ranks[0]["gradients"]) == 2 * 13
    for rank in two.ranks:
        for alone, together in zip(one.ranks[0]["gradients"], rank["gradients"], strict=True):
            assert largest_difference(alone, together) < 1e-12
        assert largest_difference(one.ranks[0]["weights"], rank["weights"]) < 1e-10
    first = one.ranks[0]["gradients"][0]
    assert max(gradient.abs().max().item() for gradient in first.values()) > 1e-3
    assert next(iter(first.values())).dtype == torch.float64


def check_same(one: Trained, two: Trained) -> None:
    """All of that, and every metric, the Hessian's among them."""
    check_targets(one, two)
    check_items(two)
    check_gradients(one, two)
    assert {"hessian_max", "hessian_trace", "soft_nll", "entropy_spearman"} < set(
        two.results["metrics"]
    )
    assert two.results["metrics"] == pytest.approx(one.results["metrics"], rel=1e-6, abs=1e-6)
    assert two.folder.name == one.folder.name
