"""Finished runs with predictions and what their scores are worth, which were never trained."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch

from callbacks.prediction_table import prediction_table
from metrics import every_score
from studies.analysis.collect import Record
from studies.report.section import Section, TableSpec

ITEMS, SEEDS, DELIVERIES = 90, 4, ["SoftLabels", "MajorityVote"]
SECTION = Section([], [], labels={"SoftLabels": "soft", "MajorityVote": "majority"})
COLUMNS = ["kl", "accuracy", "ece", "hessian_max"]
WORTH = {
    "kl": {"floor": 0.9, "ceiling": 0.1, "low": 0.1, "high": 0.11},
    "accuracy": {"floor": 0.4, "ceiling": 0.9, "low": 0.8, "high": 0.95},
    "ece": {"floor": None, "ceiling": 0.02, "low": 0.02, "high": 0.02},
}
SPEC = TableSpec(
    "main",
    "Two deliveries",
    rows="delivery",
    columns=COLUMNS,
    levels={"delivery": DELIVERIES, "seed": list(range(SEEDS))},
    planned_units=SEEDS,
)
PEOPLE = torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(3, 0.4), ITEMS)).float()


def predictions(delivery: str, seed: int) -> torch.Tensor:
    rng = np.random.default_rng([DELIVERIES.index(delivery), seed])
    noise = torch.from_numpy(rng.dirichlet(np.full(3, 0.5), ITEMS)).float()
    return 0.5 * PEOPLE + 0.5 * noise


def items_of(seed: int, shared: bool) -> np.ndarray:
    chosen = np.random.default_rng([3, seed]).permutation(ITEMS)[: ITEMS // 2]
    return np.arange(ITEMS) if shared else np.sort(chosen)


def records(folder: Path, shared: bool, worth: dict[str, Any] | None = WORTH) -> list[Record]:
    """Finished runs whose numbers are those of their predictions."""
    result = []
    for delivery in DELIVERIES:
        for seed in range(SEEDS):
            probs, test = predictions(delivery, seed), items_of(seed, shared)
            run = folder / f"{delivery}{seed}"
            run.mkdir(parents=True)
            table = prediction_table(probs, PEOPLE, torch.arange(ITEMS), {"test": test})
            pq.write_table(table, run / "predictions.parquet")
            metrics = {**every_score(probs[test], PEOPLE[test]), "hessian_max": 7.0}
            factors = {"delivery": delivery, "seed": seed}
            results = {} if worth is None else {"worth": worth}
            config = {"data": {"class_path": "datamodules.Digits", "init_args": {}}}
            result.append(Record(run.name, run, factors, metrics, results, config))
    return result
