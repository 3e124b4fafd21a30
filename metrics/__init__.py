"""Scores of predictions against annotator distributions: functions in `metrics.functional`,
torchmetrics classes here, and all of them as entries of one list in `metrics.registry`.

Imports `core` alone.
"""

from torchmetrics import MetricCollection

from metrics import functional
from metrics.all_items import (
    AllItems,
    BrierDecomposition,
    EntropyCorrelation,
    EqualMassECE,
    SmoothECE,
)
from metrics.inputs import Values, distributions
from metrics.registry import Score, by_function, register, registered, values_of
from metrics.scores import (
    HardAccuracy,
    HardNLL,
    KLDivergence,
    ScoreCollection,
    SoftBrier,
    SoftNLL,
    metrics_of,
)

from metrics import entries  # isort: skip  # last: its modules may import all of the above

__all__ = [
    "AllItems",
    "BrierDecomposition",
    "EntropyCorrelation",
    "EqualMassECE",
    "HardAccuracy",
    "HardNLL",
    "KLDivergence",
    "Score",
    "SmoothECE",
    "SoftBrier",
    "SoftNLL",
    "entries",
    "every_metric",
    "every_score",
    "functional",
    "mean_metrics",
    "register",
    "registered",
]


def mean_metrics(prefix: str) -> MetricCollection:
    """The cheap ones, for every epoch.

    Where a training diverges its predictions are NaN, and so are these scores: an error would hide
    why it ended.
    """
    cheap = [score for score in registered().values() if score.every_epoch]
    return _collection(cheap, prefix, nan_ok=True)


def every_metric(prefix: str) -> MetricCollection:
    """All of them, for a test."""
    return _collection(list(registered().values()), prefix)


def _collection(scores: list[Score], prefix: str, nan_ok: bool = False) -> MetricCollection:
    metrics = {}
    for group in by_function(scores):
        metrics |= metrics_of(group, nan_ok)
    return ScoreCollection(metrics, prefix)


def every_score(probs: Values, target_probs: Values) -> dict[str, float]:
    """What `every_metric` computes, as a function of items that are all at hand.

    NaN where a score is not defined on them.
    """
    model, annotator_probs = (table.detach() for table in distributions(probs, target_probs))
    values = {}
    for group in by_function(registered().values()):
        values |= values_of(group, model, annotator_probs)
    return {name: float(value) for name, value in values.items()}
