"""The scores of every test, in the order in which they are told."""

from collections.abc import Callable
from functools import partial

from torchmetrics import Metric

from metrics import functional, per_item
from metrics.registry import Better, Floor, Score, add
from metrics.scores import HardAccuracy, HardNLL, KLDivergence, SoftBrier, SoftNLL

SAME = "one of the two entropies is the same for all items"
PARTS = functional.brier_decomposition


def _mean(
    name: str,
    function: Callable,
    kind: type[Metric],
    label: str,
    better: Better,
    unit: str = "",
    floor: Floor = "mean",
) -> Score:
    """The mean of a number per item: cheap, and at once for all members of a pack."""
    return Score(
        name,
        function,
        label,
        better,
        unit,
        per_item=True,
        every_epoch=True,
        batched=True,
        metric=kind,
        floor=floor,
    )


for _score in (
    _mean("soft_nll", per_item.nll, SoftNLL, "Soft NLL", "lower", "nats"),
    _mean(
        "hard_nll",
        per_item.hard_nll,
        HardNLL,
        "NLL of the majority class",
        "lower",
        "nats",
        floor="majority",
    ),
    _mean("kl", per_item.kl, KLDivergence, "KL to annotators", "lower", "nats"),
    _mean("soft_brier", per_item.brier, SoftBrier, "Soft Brier", "lower"),
    _mean(
        "accuracy",
        per_item.hit,
        HardAccuracy,
        "Hard accuracy",
        "higher",
        "share of items",
        floor="majority",
    ),
    Score(
        "entropy_spearman",
        partial(functional.entropy_correlation, kind="spearman"),
        "Entropy correlation (Spearman)",
        "higher",
        undefined=SAME,
        floor="zero",
    ),
    Score(
        "entropy_pearson",
        partial(functional.entropy_correlation, kind="pearson"),
        "Entropy correlation (Pearson)",
        "higher",
        undefined=SAME,
        floor="zero",
    ),
    Score("ece", functional.equal_mass_ece, "ECE, equal mass", "lower"),
    Score(
        "ece_annotators",
        partial(functional.equal_mass_ece, against="annotators"),
        "ECE against annotators",
        "lower",
    ),
    Score("smooth_ece", functional.smooth_ece, "Smooth ECE", "lower"),
    Score(
        "smooth_ece_annotators",
        partial(functional.smooth_ece, against="annotators"),
        "Smooth ECE against annotators",
        "lower",
    ),
    Score("brier_reliability", PARTS, "Brier reliability", "lower", part="reliability"),
    Score("brier_resolution", PARTS, "Brier resolution", "higher", part="resolution"),
    Score("brier_uncertainty", PARTS, "Brier uncertainty", part="uncertainty"),
):
    add(_score)
