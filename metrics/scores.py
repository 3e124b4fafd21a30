"""torchmetrics classes over `metrics.functional`: `update(probs, target_probs)`, exact under DDP with shards of any size.

Means keep a sum and a count; measures that need all items keep them and gather them at the end, so nothing is averaged over ranks.

Tensors, numpy arrays and lists are taken, and what is no distribution is refused: by means in `update` where one process runs on a CPU, and else in
`compute`, over all ranks, so that no device is waited for and no rank is left waiting. Measures of all items look at them in `compute`.

>>> score = SoftNLL(); score.update(torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]])); score.compute().item()
0.6931471805599453
"""

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from metrics import functional
from metrics.inputs import Values, as_tables, check, check_evidence, check_rows, evidence


class MeanOverItems(Metric):
    """A sum over items and their number, over all ranks. The base of scores that are means."""

    full_state_update = False
    of_item: ClassVar[Callable[[Tensor, Tensor], Tensor]]
    total: Tensor
    items: Tensor
    seen: Tensor
    checks = True  # False where a metric beside this one in a collection checks the same tables

    def __init__(self, nan_ok: bool = False):
        """
        Args:
            nan_ok: Predictions of NaN make the score NaN instead of an error, so that a training that diverges is told by its scores.
        """
        super().__init__()
        self.nan_ok = nan_ok
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("items", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("seen", torch.full((2, 4), -torch.inf, dtype=torch.float64), dist_reduce_fx="max")  # evidence of both tables

    def update(self, probs: Values, target_probs: Values) -> None:
        tables = as_tables(probs, target_probs, self.device)
        if not len(tables[0]):
            return
        if self.checks and self.device.type == "cpu" and not self.distributed_available_fn():
            check(*tables, nan_ok=self.nan_ok)
        elif self.checks:
            self.seen = torch.maximum(self.seen, torch.stack([evidence(table) for table in tables]))
        scores = type(self).of_item(*tables)
        self.total += scores.sum()
        self.items += len(scores)

    def compute(self) -> Tensor:
        check_rows(self.items.item())
        check_evidence(self.seen, self.nan_ok)
        return self.total / self.items


class SoftNLL(MeanOverItems):
    """Mean cross-entropy between annotators and model, in nats."""

    of_item = functional.item_nll


class HardNLL(MeanOverItems):
    """Mean cross-entropy against the majority class, in nats."""

    of_item = functional.item_hard_nll


class KLDivergence(MeanOverItems):
    """Mean KL(annotators || model), in nats."""

    of_item = functional.item_kl


class SoftBrier(MeanOverItems):
    """Mean squared distance to the annotator distribution."""

    of_item = functional.item_brier


class HardAccuracy(MeanOverItems):
    """Share of items whose predicted class is the majority's."""

    of_item = functional.item_hit


class AllItems(Metric):
    """Keeps every item's prediction and annotator distribution, over all ranks, as they are. The base of measures that need them together."""

    full_state_update = False
    probs: list[Tensor]
    target_probs: list[Tensor]

    def __init__(self):
        super().__init__()
        self.add_state("probs", [], dist_reduce_fx="cat")
        self.add_state("target_probs", [], dist_reduce_fx="cat")

    def update(self, probs: Values, target_probs: Values) -> None:
        model, people = as_tables(probs, target_probs, self.device)
        self.probs.append(model.detach())
        self.target_probs.append(people.detach())

    def compute(self):
        return dim_zero_cat(self.probs), dim_zero_cat(self.target_probs)


class EntropyCorrelation(AllItems):
    """Correlation between the model's entropy and the annotators'; `kind` is spearman or pearson."""

    def __init__(self, kind: functional.Kind = "spearman"):
        super().__init__()
        self.kind: functional.Kind = kind

    def compute(self) -> Tensor:
        return functional.entropy_correlation(*super().compute(), self.kind)


class EqualMassECE(AllItems):
    """Calibration error of the top class over bins of equal mass, against the majority or against annotators."""

    def __init__(self, bins: int = 15, against: functional.Outcome = "majority"):
        super().__init__()
        self.bins = bins
        self.against: functional.Outcome = against

    def compute(self) -> Tensor:
        return functional.equal_mass_ece(*super().compute(), self.bins, self.against)


class SmoothECE(AllItems):
    """Smooth calibration error of the top class (relplot), against the majority or against annotators."""

    def __init__(self, against: functional.Outcome = "majority"):
        super().__init__()
        self.against: functional.Outcome = against

    def compute(self) -> Tensor:
        return functional.smooth_ece(*super().compute(), self.against)


class BrierDecomposition(AllItems):
    """Reliability, resolution and uncertainty of the soft Brier score."""

    def __init__(self, bins: int = 15):
        super().__init__()
        self.bins = bins

    def compute(self) -> dict[str, Tensor]:
        parts = functional.brier_decomposition(*super().compute(), self.bins)
        return {f"brier_{name}": part for name, part in parts._asdict().items()}
