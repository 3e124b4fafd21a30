"""`results.json` of a run: how it is put together, written and read again, and what it says of
whether a run has ended.
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from callbacks.records.earlier_runs import training_by_evidence
from callbacks.records.results_kinds import are_results
from callbacks.records.training_record import FILE, TrainingRecord, as_training
from core.atomic_io import write_atomically
from core.read_json import read_json, with_nan, without_nan
from metrics import registered


def results_of_test(
    about: dict[str, Any],
    training: TrainingRecord | None,
    scored: int,
    probes: list[dict[str, Any]],
    metrics: dict[str, float],
    notes: list[str],
) -> dict[str, Any]:
    """All that `results.json` says, in its order. A metric that is not defined has a note."""
    ended = asdict(training) if training else None
    metrics = dict(sorted(metrics.items()))
    rest = {"probes": probes, "metrics": metrics, "notes": [*notes, *undefined_in_words(metrics)]}
    return {**about, "scored_items": scored, "training": ended, **rest}


def undefined_in_words(metrics: dict[str, float]) -> list[str]:
    """A sentence for each metric that is not a finite number.

    >>> undefined_in_words({"kl": 0.5, "entropy_pearson": math.nan, "own": math.inf})
    ['entropy_pearson is not defined, because one of the two entropies is the same for all items.',
    'own is not defined, because it is inf.']
    """
    reasons = {name: score.undefined for name, score in registered(ordinal=True).items()}
    undefined = {name: value for name, value in metrics.items() if not math.isfinite(value)}
    return [
        f"{name} is not defined, because {reasons.get(name) or f'it is {value}'}."
        for name, value in undefined.items()
    ]


def with_earlier(results: dict[str, Any], earlier: dict[str, Any] | None) -> dict[str, Any]:
    """Results with what an earlier test of the same run measured by other probes, and with scores
    that `study evaluate` added: a test without them takes nothing away.

    >>> probe, other = {"class_path": "callbacks.OODScores"}, {"class_path": "callbacks.GradCAM"}
    >>> earlier = {"metrics": {"kl": 0.3, "ood": 0.9}, "probes": [probe], "notes": ["a"]}
    >>> with_earlier({"metrics": {"kl": 0.3, "cam": 0.1}, "probes": [other], "notes": []}, earlier)
    {'metrics': {'cam': 0.1, 'kl': 0.3, 'ood': 0.9}, 'probes': [{'class_path':
    'callbacks.OODScores'}, {'class_path': 'callbacks.GradCAM'}], 'notes': ['a']}
    """
    if earlier is None:
        return results
    measured = {probe["class_path"] for probe in results["probes"]}
    kept = [probe for probe in earlier.get("probes", []) if probe["class_path"] not in measured]
    added = {
        name: origin
        for name, origin in earlier.get("evaluated", {}).items()
        if name in earlier["metrics"] and name not in results["metrics"]
    }
    if not kept and not added:
        return results
    numbers = earlier["metrics"] if kept else {name: earlier["metrics"][name] for name in added}
    return {
        **results,
        "metrics": dict(sorted({**numbers, **results["metrics"]}.items())),
        "probes": kept + results["probes"],
        "notes": list(dict.fromkeys([*earlier["notes"], *results["notes"]])),
        **({"evaluated": added} if added else {}),
    }


def write_results(folder: Path, results: dict[str, Any]) -> None:
    """The last of a run's numbers to be written: where it is whole, the run is done.

    Only pictures come after it.
    """
    _write(folder / "results.json", results)


def _write(path: Path, results: dict[str, Any]) -> None:
    write_atomically(path, json.dumps(without_nan(results), indent=2, allow_nan=False) + "\n")


def write_before_drawing(
    path: Path, results: dict[str, Any], draw: Callable[[], list[str]]
) -> dict[str, Any]:
    """Numbers first, then what `draw` draws.

    Where it returns notes, because it could not draw all of it, they are added; returns what was
    written.
    """
    _write(path, results)
    notes = draw()
    if notes:
        results = {**results, "notes": [*results["notes"], *notes]}
        _write(path, results)
    return results


def read_results(folder: Path) -> dict[str, Any] | None:
    """A finished run's results; None where there are none, where the file was cut short or altered,
    and where it does not say that the training behind it had ended and that all items were scored,
    as in earlier versions: such a run is tested again.
    """
    results = read_json(folder / "results.json")
    if not isinstance(results, dict) or not are_results(results):
        return None
    record, items = as_training(results.get("training")), results.get("test_items")
    if (
        not record
        or record.diverged
        or type(items) is not int
        or results.get("scored_items") != items
    ):
        return None
    return {**results, "metrics": with_nan(results["metrics"])}


def read_training(folder: Path) -> TrainingRecord | None:
    """How a run's training ended; None where it has not, or where nothing proves that it has."""
    path = folder / FILE
    if path.exists():
        return as_training(read_json(path))
    # only earlier versions left neither
    return None if (folder / "fingerprint.json").exists() else training_by_evidence(folder)


def read_failure(folder: Path) -> str | None:
    """Why a run has no result and is not to be tried again: it diverged.

    None where nothing like that is known.
    """
    record = read_training(folder)
    return record.reason or "its training diverged" if record and record.diverged else None


def has_ended(folder: Path) -> bool:
    """Whether a run has a result, or will never have one."""
    return read_results(folder) is not None or read_failure(folder) is not None
