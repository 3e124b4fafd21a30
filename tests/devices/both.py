"""One short training and test, made by any number of processes however they are started, and what to compare of it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch
import yaml

from tests.callbacks.patches import write_noise

ROOT = Path(__file__).parents[2]
# 97 training items in batches of 8: the last batch of an epoch is a single item. LeNet has neither dropout, which is drawn per process, nor BatchNorm.
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
        ranks, json.loads((folder / "history.json").read_text()), json.loads(results.read_text()) if results.exists() else {}, folder
    )


def write_callbacks(folder: Path, probes: bool) -> Path:
    """A YAML with the recorder and, if that is asked for, every probe; one set of images of the OOD scores is there and another is not."""
    sets = {"noise": write_noise(folder), "absent": str(folder / "absent.idx")}
    chosen = {**PROBES, "OODScores": {"k": 5, "sets": sets}} if probes else {}
    entries = [{"class_path": name, "init_args": more} for name, more in {"tests.devices.recorder.Recorder": {}, **chosen}.items()]
    path = folder / "callbacks.yaml"
    path.write_text(yaml.safe_dump({"trainer": {"callbacks": entries}}))
    return path


def start(*command: str | Path, timeout: float = 600) -> None:
    """Run a command from the project's folder, one thread in each of its processes, and show what it said where it fails."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout, cwd=ROOT, env=environment)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def cli(*words: str | Path) -> list[str]:
    return [sys.executable, str(ROOT / "cli.py"), *map(str, words)]


def python_module(*words: str) -> list[str]:
    return [sys.executable, "-m", *words]


def largest_difference(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> float:
    assert one.keys() == two.keys()
    return max((one[name] - two[name]).abs().max().item() for name in one)
