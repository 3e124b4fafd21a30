"""How metrics and factors are called before people: names, which direction is better, how many
digits mean something, units. Scores say so in `metrics.registry`; probes' numbers are listed here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from metrics import Score, registered
from metrics.calibrators import FORMS
from metrics.registry import LABEL_SETS, STRATA, Better


@dataclass(frozen=True)
class Measure:
    """What tables, figures and claims say of a number."""

    name: str
    better: Better | None = None  # None: neither direction is, so nothing is set in bold
    digits: int = 4
    unit: str = ""

    @property
    def axis(self) -> str:
        """The label of an axis.

        >>> MEASURES["kl"].axis
        'KL to annotators (nats), lower is better'
        """
        return (
            self.name
            + (f" ({self.unit})" if self.unit else "")
            + (f", {self.better} is better" if self.better else "")
        )

    @property
    def arrow(self) -> str:
        """The direction that is better, after the name in a table's heading."""
        return {"lower": " ↓", "higher": " ↑", None: ""}[self.better]


_DETECTORS = {
    "energy": "energy",
    "msp": "MSP",
    "odin": "ODIN",
    "entropy": "entropy",
    "margin": "logit margin",
    "knn": "KNN",
    "mahalanobis": "Mahalanobis",
    "vim": "ViM",
}
_OOD = {"svhn": "SVHN", "cifar100": "CIFAR-100", "mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}
_DETECTION: dict[str, tuple[str, Better]] = {
    "auroc": ("AUROC", "higher"),
    "aupr": ("AUPR", "higher"),
    "fpr95": ("FPR@95", "lower"),
}

_MAP = {  # of DataCartography, which gives them by stratum as well
    "cartography_confidence": Measure(
        "Confidence over epochs, mean over items", unit="probability of the target class"
    ),
    "cartography_variability": Measure(
        "Variability over epochs, mean over items", unit="SD of that probability"
    ),
}

_PROBES = {
    "hessian_max": Measure("Largest Hessian eigenvalue", "lower", digits=1),
    "hessian_max_high": Measure("Largest Hessian eigenvalue, high disagreement", "lower", digits=1),
    "hessian_trace": Measure("Hessian trace", "lower", digits=1),
    "hessian_trace_high": Measure("Hessian trace, high disagreement", "lower", digits=1),
    "gradient_variance": Measure("Label-sampling variance of the last-layer gradient"),
    "gradient_variance_spearman": Measure("Gradient variance and annotator entropy (Spearman)"),
    "gradient_variance_mc": Measure(
        "Label-sampling variance of the last-layer gradient, Monte Carlo"
    ),
    "gradient_variance_mc_spearman": Measure(
        "Monte Carlo variance and annotator entropy (Spearman)"
    ),
    "gradient_variance_gap": Measure(
        "Gap between Monte Carlo and closed-form gradient variance", unit="share"
    ),
    "val_loss": Measure("Validation loss of the checkpoint", "lower", unit="nats"),
    "best_epoch": Measure("Epoch of the best validation soft NLL", digits=1),
    "best_loss_epoch": Measure(
        "Epoch of the best validation loss, each on its own targets", digits=1
    ),
    "epoch_within_5pct": Measure(
        "First epoch within 5 % of the best validation soft NLL", digits=1
    ),
    "best_val_soft_nll": Measure("Best validation soft NLL", "lower", unit="nats"),
    "final_val_soft_nll": Measure("Final validation soft NLL", "lower", unit="nats"),
    "late_js": Measure("JS divergence between successive epochs, last quarter", unit="nats"),
    "late_js_nohlv": Measure(
        "JS divergence between successive epochs, last quarter, unanimous", unit="nats"
    ),
    "late_js_hlv": Measure(
        "JS divergence between successive epochs, last quarter, not unanimous", unit="nats"
    ),
    "late_js_high": Measure(
        "JS divergence between successive epochs, last quarter, high disagreement", unit="nats"
    ),
    **_MAP,
    "cartography_correctness": Measure(
        "Share of epochs with the target class predicted", unit="mean over items"
    ),
    "cartography_forgetting_events": Measure(
        "Times forgotten during training", unit="mean over items"
    ),
    "cartography_confidence_spearman": Measure(
        "Confidence over epochs and human uncertainty (Spearman)"
    ),
    "cartography_variability_spearman": Measure(
        "Variability over epochs and human uncertainty (Spearman)"
    ),
    "cartography_expected_confidence_spearman": Measure(
        "Expected probability over epochs and human uncertainty (Spearman)"
    ),
    "cartography_expected_variability_spearman": Measure(
        "Variability of the expected probability and human uncertainty (Spearman)"
    ),
    **{
        f"set_{key}{form}": replace(measure, name=measure.name + words)
        for key, measure in {
            "coverage": Measure("Votes within the prediction set", unit="share"),
            "size": Measure("Classes in the prediction set", "lower", digits=2),
        }.items()
        for form, words in {
            "": "",
            **{f"_{key}": f", {words}" for key, words in STRATA.items()},
            "_high": ", high disagreement",
            "_majority": ", thresholds by the majority",
        }.items()
    },
    **{
        name: Measure(f"Temperature, {form.words}")
        for name, form in FORMS.items()
        if form.kind == "temperature"
    },
    "items_nohlv": Measure("Test items, unanimous", digits=0),
    "items_hlv": Measure("Test items, not unanimous", digits=0),
} | {
    f"{key}_{metric}_{score}": Measure(f"{ood} {area}, {name}", better)
    for key, ood in _OOD.items()
    for metric, (area, better) in _DETECTION.items()
    for score, name in _DETECTORS.items()
}


@lru_cache(maxsize=8)
def _known(scores: tuple[Score, ...]) -> dict[str, Measure]:
    """Of these scores in all their forms, and of probes."""
    whole = {
        score.name: Measure(score.label, score.better, score.digits, score.unit) for score in scores
    }
    strata = {f"_{key}": f", {words}" for key, words in STRATA.items()}
    other_labels = {  # that a dataset was published with, where it was labelled anew
        f"_{key}{stratum}": f", {words}{of_items}"
        for key, words in LABEL_SETS.items()
        for stratum, of_items in {"": "", **strata}.items()
    }
    calibrated = {f"_{name}": f", {form.words}" for name, form in FORMS.items()}
    return (
        whole
        | _PROBES
        | {
            metric + form: replace(measure, name=measure.name + words)
            for metric, measure in (whole | _MAP).items()
            for form, words in strata.items()
        }
        | {
            metric + form: replace(measure, name=measure.name + words)
            for metric, measure in whole.items()
            for form, words in (other_labels | calibrated).items()
        }
    )


class _Measures(Mapping[str, Measure]):
    """All that is known by name: also a score that somebody's module registers later."""

    def __getitem__(self, metric: str) -> Measure:
        return _known(tuple(registered(ordinal=True).values()))[metric]

    def __iter__(self) -> Iterator[str]:
        return iter(_known(tuple(registered(ordinal=True).values())))

    def __len__(self) -> int:
        return len(_known(tuple(registered(ordinal=True).values())))


MEASURES = _Measures()


def measure(metric: str) -> Measure:
    """A metric that is not listed is shown under its own name, and no direction is called better.

    >>> measure("my_score")
    Measure(name='my_score', better=None, digits=4, unit='')
    """
    return MEASURES.get(metric, Measure(metric))


def factor_name(factor: str) -> str:
    """A factor as a heading says it, without the options that it stands below.

    >>> factor_name("data.votes_per_item")
    'votes per item'
    """
    return factor.rsplit(".", 1)[-1].replace("_", " ")
