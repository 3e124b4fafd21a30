"""torchmetrics classes of measures that need all items together: they are kept, gathered over all
ranks and looked at in `compute`.

>>> score = EqualMassECE(); score.update([[0.5, 0.5]], [[1.0, 0.0]]); score.compute().item()
0.5
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from metrics import functional
from metrics.inputs import Values, as_tables, check_one, check_rows
from metrics.registry import Score, values_of


class AllItems(Metric):
    """Keeps every item's prediction and annotator distribution, over all ranks, as they are.

    The base of measures that need them together.
    """

    full_state_update = False
    probs: list[Tensor]
    target_probs: list[Tensor]

    def __init__(self):
        super().__init__()
        self.add_state("probs", [], dist_reduce_fx="cat")
        self.add_state("target_probs", [], dist_reduce_fx="cat")

    def update(self, probs: Values, target_probs: Values) -> None:
        """Keep a batch."""
        model, annotator_probs = as_tables(probs, target_probs, self.device)
        self.probs.append(model.detach())
        self.target_probs.append(annotator_probs.detach())

    def tables(self) -> tuple[Tensor, Tensor]:
        """Predictions and annotator distributions of all items so far."""
        return dim_zero_cat(self.probs), dim_zero_cat(self.target_probs)

    def compute(self) -> Any:
        """The tables themselves; measures say here what they make of them."""
        return self.tables()


class EntropyCorrelation(AllItems):
    """Correlation between the model's entropy and the annotators'; `kind` is spearman or
    pearson.
    """

    def __init__(self, kind: functional.Kind = "spearman"):
        super().__init__()
        self.kind: functional.Kind = kind

    def compute(self) -> Tensor:
        """The score of all items so far."""
        return functional.entropy_correlation(*self.tables(), self.kind)


class EqualMassECE(AllItems):
    """Calibration error of the top class over bins of equal mass, against the majority or against
    annotators.
    """

    def __init__(self, bins: int = 15, against: functional.Outcome = "majority"):
        super().__init__()
        self.bins = bins
        self.against: functional.Outcome = against

    def compute(self) -> Tensor:
        """The score of all items so far."""
        return functional.equal_mass_ece(*self.tables(), self.bins, self.against)


class SmoothECE(AllItems):
    """Smooth calibration error of the top class (relplot), against the majority or against
    annotators.
    """

    def __init__(self, against: functional.Outcome = "majority"):
        super().__init__()
        self.against: functional.Outcome = against

    def compute(self) -> Tensor:
        """The score of all items so far."""
        return functional.smooth_ece(*self.tables(), self.against)


class BrierDecomposition(AllItems):
    """Reliability, resolution and uncertainty of the soft Brier score."""

    def __init__(self, bins: int = 15):
        super().__init__()
        self.bins = bins

    def compute(self) -> dict[str, Tensor]:
        """The three parts by name, of all items so far."""
        parts = functional.brier_decomposition(*self.tables(), self.bins)
        return {f"brier_{name}": part for name, part in parts._asdict().items()}


class RegisteredScore(AllItems):
    """What a registered function says of all items, by the name of each score that it gives."""

    def __init__(self, scores: Sequence[Score], nan_ok: bool = False):
        """
        Args:
            scores: Entries of one function: a single one, or those of its parts.
            nan_ok: Predictions of NaN make the scores NaN instead of an error.
        """
        super().__init__()
        self.scores, self.nan_ok = tuple(scores), nan_ok

    def compute(self) -> Tensor | dict[str, Tensor]:
        """The score of all items so far, or its parts by name."""
        probs, target_probs = self.tables()
        check_rows(len(probs))
        check_one("probs", probs, self.nan_ok)
        check_one("target_probs", target_probs)
        values = values_of(self.scores, probs, target_probs)
        return values if self.scores[0].part else values[self.scores[0].name]
