"""Scores of predictions against annotator distributions: functions in `metrics.functional`, torchmetrics classes here."""

from torchmetrics import MetricCollection

from metrics.scores import (
    AllItems,
    BrierDecomposition,
    EntropyCorrelation,
    EqualMassECE,
    HardAccuracy,
    KLDivergence,
    SmoothECE,
    SoftBrier,
    SoftNLL,
)

__all__ = [
    "AllItems",
    "BrierDecomposition",
    "EntropyCorrelation",
    "EqualMassECE",
    "HardAccuracy",
    "KLDivergence",
    "SmoothECE",
    "SoftBrier",
    "SoftNLL",
    "every_metric",
    "mean_metrics",
]


def mean_metrics(prefix: str) -> MetricCollection:
    """The cheap ones, for every epoch."""
    return MetricCollection(
        {"soft_nll": SoftNLL(), "kl": KLDivergence(), "soft_brier": SoftBrier(), "accuracy": HardAccuracy()}, prefix=prefix
    )


def every_metric(prefix: str) -> MetricCollection:
    """All of them, for a test."""
    return MetricCollection(
        {
            "soft_nll": SoftNLL(),
            "kl": KLDivergence(),
            "soft_brier": SoftBrier(),
            "accuracy": HardAccuracy(),
            "entropy_spearman": EntropyCorrelation("spearman"),
            "entropy_pearson": EntropyCorrelation("pearson"),
            "ece": EqualMassECE(),
            "ece_annotators": EqualMassECE(against="annotators"),
            "smooth_ece": SmoothECE(),
            "smooth_ece_annotators": SmoothECE(against="annotators"),
            "brier": BrierDecomposition(),
        },
        prefix=prefix,
    )
