"""Finished runs of a small study, made up file by file, and a report for every kind of file that it
reads.
"""

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import yaml

from callbacks.cartography.records import record_path, write_epoch
from callbacks.prediction_table import write_predictions
from core.read_json import without_nan
from datamodules.io.files import sha256
from experiment.build import build_data
from experiment.run_checkpoints import best_checkpoint
from studies.analysis.comparison.comparison import Comparison, PairLine, PairValue
from studies.analysis.comparison.kept_comparisons import FILE
from studies.analysis.comparison.loss_barrier import LossLine
from studies.plan.study import Run, Study
from studies.report.report import build_report, write_files
from tests.hostile.readers import parquet

DELIVERIES = ("SoftLabels", "Multipass")
OF = {"rows": "data.delivery", "reference": "SoftLabels"}
CLAIM = {"claim": "One is better.", "paper": "Table 1", "level": "Multipass"}
ABOVE = {**CLAIM, "test": "above", "bound": 0}
NETWORKS = {"name": "nets", "rows": "data.delivery", "points": 3}
REPORTS: dict[str, dict[str, Any]] = {  # by the file that they read
    "results.json": {
        "tables": [
            {"name": "t", **OF, "columns": ["soft_nll", "accuracy"], "test": "t", "family": "holm"}
        ],
        "changes": [
            {
                "name": "c",
                **OF,
                "groups": "data.votes_per_item",
                "level": "Multipass",
                "columns": ["soft_nll"],
            }
        ],
        "figures": [
            {"name": "p", "kind": "points", "metric": "soft_nll", "rows": "data.delivery"},
            {
                "name": "l",
                "kind": "lines",
                "metric": "soft_nll",
                "x": "data.votes_per_item",
                "lines": "data.delivery",
            },
        ],
        "claims": [{"id": "better", "metric": "soft_nll", **OF, **CLAIM, "test": "less"}],
    },
    "history.json": {
        "figures": [
            {
                "name": "h",
                "kind": "history",
                "metric": ["val/soft_nll", "val/js"],
                "lines": "data.delivery",
            }
        ]
    },
    "predictions.parquet": {
        "figures": [
            {"name": "v", "kind": "curves", "rows": "data.delivery"},
            {"name": "e", "kind": "target_error", **OF},
            {"name": "i", "kind": "examples", "rows": "data.delivery", "number": 1},
        ],
        "mode_shifts": [{"name": "m", **OF, "groups": "data.votes_per_item"}],
        "claims": [{"id": "gain", "figure": "e", **ABOVE}],
    },
    "cartography_train.parquet": {
        "figures": [{"name": "d", "kind": "data_map", "panels": "data.delivery"}]
    },
    FILE: {
        "comparisons": [NETWORKS],
        "claims": [{"id": "basins", "comparison": "nets", "metric": "cka", **ABOVE}],
    },
}
REPORTS["cartography_train.f32"] = REPORTS["cartography_train.parquet"]
METRICS = {"soft_nll": 0.5, "accuracy": 0.9, "val_loss": 0.4}
EPOCHS = 3


def study_of(folder: Path, file: str) -> Study:
    """The study whose report reads this kind of file."""
    content = {
        "name": "small",
        "configs": ["configs/digits.yaml"],
        "grids": {
            "main": {
                "data.delivery": list(DELIVERIES),
                "data.votes_per_item": [3],
                "seed_everything": [0, 1, 2],
            }
        },
        "report": REPORTS[file],
    }
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return Study.load(path)


@cache
def runs_of_study() -> tuple[Run, ...]:
    """All its runs, which are the same whatever is reported of them."""
    with TemporaryDirectory() as folder:
        return tuple(study_of(Path(folder), "results.json").runs())


def write_runs(folder: Path) -> None:
    """Every run with all of its files."""
    for number, run in enumerate(runs_of_study()):
        place = run.folder(folder / "runs")
        place.mkdir(parents=True)
        (place / "results.json").write_text(json.dumps(results(number)))
        (place / "history.json").write_text(json.dumps(history(number)))
        data = build_data(run.config)
        assert data.corpus is not None
        annotator_probs = data.annotator_probs.double()
        write_predictions(
            place,
            annotator_probs * 0.7 + 0.3 / annotator_probs.shape[1],
            annotator_probs,
            torch.arange(len(annotator_probs)),
            data.corpus.splits,
        )
        items = np.sort(data.rows("train"))
        (place / "cartography_train.parquet").write_bytes(parquet(pa.table({"index": items})))
        for epoch in range(EPOCHS):
            write_epoch(
                record_path(place, "train"),
                epoch,
                np.random.default_rng([number, epoch]).random((3, len(items))),
            )
        best_checkpoint(place).parent.mkdir()
        best_checkpoint(place).write_bytes(bytes([number]))
    (folder / "out").mkdir()
    (folder / "out" / FILE).write_text(json.dumps(comparisons(folder)))


def results(number: int) -> dict[str, Any]:
    about = {
        "run": f"run {number}",
        "dataset": "Digits",
        "simulated_annotators": True,
        "embedder": None,
        "versions": {"torch": "2"},
    }
    about |= {"val_is_test": False, "test_items": 540, "scored_items": 540, "notes": []}
    about["training"] = {"ended": "epochs", "epochs": EPOCHS, "planned_epochs": EPOCHS, "steps": 9}
    return {**about, "metrics": {name: value + 0.01 * number for name, value in METRICS.items()}}


def history(number: int) -> list[dict[str, float]]:
    return [
        {
            "epoch": epoch,
            "lr": 0.1,
            "val/soft_nll": 1 / (1 + epoch + number),
            "val/js": 0.1 / (1 + epoch),
        }
        for epoch in range(EPOCHS)
    ]


def comparisons(folder: Path) -> dict[str, Any]:
    """What is kept of comparing these runs, whose checkpoints are a byte each."""
    digests = {
        run.name: sha256(best_checkpoint(run.folder(folder / "runs"))) for run in runs_of_study()
    }
    pairs = [(a, a, s, t) for a in DELIVERIES for s in range(3) for t in range(s + 1, 3)] + [
        (*DELIVERIES, s, s) for s in range(3)
    ]
    values = [PairValue("cka", (a, b), (s, t), 0.5 + 0.1 * s, 10) for a, b, s, t in pairs]
    values += [PairValue("barrier", DELIVERIES, (s, s), 0.2 + 0.1 * s, 10) for s in range(3)]
    lines = [
        PairLine(DELIVERIES, s, 10, LossLine([0.0, 0.5, 1.0], [1.0, 2.0, 1.0], None))
        for s in range(3)
    ]
    result = Comparison(
        "Digits",
        True,
        "SimpleFFN",
        None,
        "data.delivery",
        list(DELIVERIES),
        60,
        0.9,
        values,
        lines,
        [],
    )
    options = {"factor": "data.delivery", "points": 3, "quantile": 0.9}
    return {
        "nets": {"runs": digests, "options": options, "comparison": without_nan(asdict(result))}
    }


def report_on(folder: Path, file: str) -> str:
    """The page of the report that reads this kind of file, which is written whole."""
    study = study_of(folder, file)
    return write_files(
        build_report(study, folder / "runs", folder / "out"), folder / "out"
    ).read_text()
