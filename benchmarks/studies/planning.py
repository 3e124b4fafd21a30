"""Planning a study of 10,000 runs (target: under 5 s) and reporting one of 1,000 finished runs
(target: under 60 s).

The peer is what a study would cost without planning each factor once: parsing every run's options,
measured on a sample and extrapolated.

    python -m benchmarks.studies.planning
"""

import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from callbacks.records.training_record import TrainingRecord
from callbacks.results import describe_value, write_results
from datamodules import SoftLabels
from experiment.configuration import resolve
from studies.commands import jobs_of
from studies.plan.study import Study
from studies.report.report import write_report

METRICS = ("soft_nll", "kl", "accuracy", "entropy_spearman", "ece")


def main() -> None:
    """Plan and report large studies, and print what it takes."""
    resolve(["--config", "configs/digits.yaml"])  # builds the parser, as any command does once
    factors = {
        "data.delivery": ["SoftLabels", "MajorityVote", "Multipass", "StochasticLabelSampling"],
        "data.votes_per_item": [5, 10, 25, 50, None],
        "model.optimizer.init_args.lr": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
        "model.optimizer.init_args.weight_decay": [0.0, 1e-4],
        "seed_everything": list(range(50)),
    }
    start = time.perf_counter()
    runs = study(factors).runs()
    jobs = jobs_of(runs, processes=2)
    planning = time.perf_counter() - start
    start = time.perf_counter()
    for seed in range(20):
        resolve(["--config", "configs/digits.yaml", "--seed_everything", str(seed)])
    peer = (time.perf_counter() - start) / 20 * len(runs)
    verdict = "reached" if planning < 5 else "NOT reached"
    print(
        f"planning {len(runs):,} runs into {len(jobs)} jobs: {planning:.1f} s (target under 5 s): "
        f"{verdict}"
    )
    print(
        f"    {peer / planning:.0f}x faster than parsing each run's options ({peer:.0f} s, "
        "extrapolated from 20)"
    )
    with tempfile.TemporaryDirectory() as folder:
        thousand = study(
            {"data.delivery": factors["data.delivery"], "seed_everything": list(range(250))}
        )
        fill(thousand, Path(folder))
        start = time.perf_counter()
        write_report(thousand, Path(folder), Path(folder) / "report")
        reporting = time.perf_counter() - start
    print(
        f"report over 1,000 finished runs: {reporting:.1f} s (target under 60 s): "
        f"{'reached' if reporting < 60 else 'NOT reached'}"
    )


def study(factors: dict) -> Study:
    """A study with these factors and the digits' report."""
    template = Study.load("configs/studies/digits.yaml")
    return Study(
        name="large",
        path=template.path,
        configs=template.configs,
        grids={"main": factors},
        report=template.report,
    )


def fill(study: Study, folder: Path) -> None:
    """Results as finished runs leave them, with random numbers."""
    rng = np.random.default_rng(0)
    about = {
        "dataset": "Digits",
        "simulated_annotators": True,
        "delivery": describe_value(SoftLabels()),
        "versions": {},
    }
    about |= {
        "test_items": 540,
        "scored_items": 540,
        "training": asdict(TrainingRecord("epochs", 20, 20, 800)),
        "probes": [],
        "notes": [],
    }
    for run in study.runs():
        metrics = dict(zip(METRICS, rng.random(len(METRICS)).tolist(), strict=True))
        write_results(
            run.folder(folder),
            json.loads(json.dumps({"run": run.name, **about, "metrics": metrics})),
        )


if __name__ == "__main__":
    main()
