"""Scores of predictions against annotator distributions: functions in `metrics.functional`,
torchmetrics classes here.
"""

from torchmetrics import MetricCollection

from metrics import functional
from metrics.inputs import Values, as_tables
from metrics.scores import (
    AllItems,
    BrierDecomposition,
    EntropyCorrelation,
    EqualMassECE,
    HardAccuracy,
    HardNLL,
    KLDivergence,
    ScoreCollection,
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
    "HardNLL",
    "KLDivergence",
    "SmoothECE",
    "SoftBrier",
    "SoftNLL",
    "every_metric",
    "every_score",
    "mean_metrics",
]


def mean_metrics(prefix: str) -> MetricCollection:
    """The cheap ones, for every epoch.

    Where a training diverges its predictions are NaN, and so are these scores: an error would hide
    why it ended.
    """
    kinds = {
        "soft_nll": SoftNLL,
        "hard_nll": HardNLL,
        "kl": KLDivergence,
        "soft_brier": SoftBrier,
        "accuracy": HardAccuracy,
    }
    return ScoreCollection({name: kind(nan_ok=True) for name, kind in kinds.items()}, prefix)


def every_metric(prefix: str) -> MetricCollection:
    """All of them, for a test."""
    metrics = {
        "soft_nll": SoftNLL(),
        "hard_nll": HardNLL(),
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
    }
    return ScoreCollection(metrics, prefix)


def every_score(probs: Values, target_probs: Values) -> dict[str, float]:
    """What `every_metric` computes, as a function of items that are all at hand.

    NaN where a score is not defined on them.
    """
    model, annotator_probs = as_tables(probs, target_probs)
    given = (model.detach(), annotator_probs.detach())
    scores = {
        "soft_nll": functional.soft_nll(*given),
        "hard_nll": functional.hard_nll(*given),
        "kl": functional.kl_divergence(*given),
        "soft_brier": functional.soft_brier(*given),
        "accuracy": functional.hard_accuracy(*given),
        "entropy_spearman": functional.entropy_correlation(*given, "spearman"),
        "entropy_pearson": functional.entropy_correlation(*given, "pearson"),
        "ece": functional.equal_mass_ece(*given),
        "ece_annotators": functional.equal_mass_ece(*given, against="annotators"),
        "smooth_ece": functional.smooth_ece(*given),
        "smooth_ece_annotators": functional.smooth_ece(*given, against="annotators"),
        **{
            f"brier_{name}": part
            for name, part in functional.brier_decomposition(*given)._asdict().items()
        },
    }
    return {name: float(value) for name, value in scores.items()}
