"""torchmetrics classes over `metrics.functional`: `update(probs, target_probs)`, exact under DDP
with shards of any size.

Means keep a sum and a count; measures that need all items keep them and gather them at the end, so
nothing is averaged over ranks.

Tensors, numpy arrays and lists are taken, and what is no distribution is refused: by means in
`update` where one process runs on a CPU, and else in `compute`, over all ranks, so that no device
is waited for and no rank is left waiting. Measures of all items look at them in `compute`.

>>> score = SoftNLL(); score.update(torch.tensor([[0.5, 0.5]]),
...     torch.tensor([[1.0, 0.0]])); score.compute().item()
0.6931471805599453
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import torch
from torch import Tensor
from torchmetrics import Metric, MetricCollection
from torchmetrics.utilities import dim_zero_cat

from metrics import functional, per_item
from metrics.inputs import Values, as_tables, check, check_evidence, check_rows, evidence

_LOOKS: ContextVar[list[Tensor | None] | None] = ContextVar(
    "what was seen of the tables that a collection gives its scores", default=None
)


class MeanOverItems(Metric):
    """A sum over items and their number, over all ranks. The base of scores that are means."""

    full_state_update = False
    of_item: ClassVar[Callable[[Tensor, Tensor], Tensor]]
    total: Tensor
    items: Tensor
    seen: Tensor

    def __init__(self, nan_ok: bool = False):
        """
        Args:
            nan_ok: Predictions of NaN make the score NaN instead of an error, so that a training
                that diverges is told by its scores.
        """
        super().__init__()
        self.nan_ok = nan_ok
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("items", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        # evidence of both tables
        self.add_state(
            "seen", torch.full((2, 4), -torch.inf, dtype=torch.float64), dist_reduce_fx="max"
        )

    def update(self, probs: Values, target_probs: Values) -> None:
        tables = as_tables(probs, target_probs, self.device)
        if not len(tables[0]):
            return
        looks = _LOOKS.get()
        if looks is None:
            looks = []
        if not looks:
            looks.append(self._look(*tables))
        if looks[0] is not None:
            self.seen = torch.maximum(self.seen, looks[0])
        scores = type(self).of_item(*tables)
        self.total += scores.sum()
        self.items += len(scores)

    def _look(self, probs: Tensor, target_probs: Tensor) -> Tensor | None:
        """Refuse tables that are no distributions, or where that would mean to wait, keep what
        tells so.
        """
        if self.device.type == "cpu" and not self.distributed_available_fn():
            return check(probs, target_probs, nan_ok=self.nan_ok)
        return torch.stack([evidence(probs), evidence(target_probs)])

    def compute(self) -> Tensor:
        check_rows(self.items.item())
        check_evidence(self.seen, self.nan_ok)
        return self.total / self.items


class SoftNLL(MeanOverItems):
    """Mean cross-entropy between annotators and model, in nats."""

    of_item = per_item.nll


class HardNLL(MeanOverItems):
    """Mean cross-entropy against the majority class, in nats."""

    of_item = per_item.hard_nll


class KLDivergence(MeanOverItems):
    """Mean KL(annotators || model), in nats."""

    of_item = per_item.kl


class SoftBrier(MeanOverItems):
    """Mean squared distance to the annotator distribution."""

    of_item = per_item.brier


class HardAccuracy(MeanOverItems):
    """Share of items whose predicted class is the majority's."""

    of_item = per_item.hit


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
        model, annotator_probs = as_tables(probs, target_probs, self.device)
        self.probs.append(model.detach())
        self.target_probs.append(annotator_probs.detach())

    def compute(self):
        return dim_zero_cat(self.probs), dim_zero_cat(self.target_probs)


class EntropyCorrelation(AllItems):
    """Correlation between the model's entropy and the annotators'; `kind` is spearman or
    pearson.
    """

    def __init__(self, kind: functional.Kind = "spearman"):
        super().__init__()
        self.kind: functional.Kind = kind

    def compute(self) -> Tensor:
        return functional.entropy_correlation(*super().compute(), self.kind)


class EqualMassECE(AllItems):
    """Calibration error of the top class over bins of equal mass, against the majority or against
    annotators.
    """

    def __init__(self, bins: int = 15, against: functional.Outcome = "majority"):
        super().__init__()
        self.bins = bins
        self.against: functional.Outcome = against

    def compute(self) -> Tensor:
        return functional.equal_mass_ece(*super().compute(), self.bins, self.against)


class SmoothECE(AllItems):
    """Smooth calibration error of the top class (relplot), against the majority or against
    annotators.
    """

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


class ScoreCollection(MetricCollection):
    """Scores of the same tables, which are looked at once for all of them.

    A score that is taken out of it looks by itself.
    """

    def __init__(self, metrics: Mapping[str, Metric], prefix: str):
        """Measures that keep all items share one copy of them.

        The groups are spelled out, because torchmetrics would otherwise join any two whose state is
        equal after the first batch, as NLL and KL are on unanimous items.
        """
        keeping = [name for name, metric in metrics.items() if isinstance(metric, AllItems)]
        groups = [[name] for name in metrics if name not in keeping] + (
            [keeping] if keeping else []
        )
        super().__init__(dict(metrics), prefix=prefix, compute_groups=groups)

    def update(self, *args: Any, **kwargs: Any) -> None:
        with self._one_look():
            super().update(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        with self._one_look():
            return super().forward(*args, **kwargs)

    @contextmanager
    def _one_look(self) -> Iterator[None]:
        before = _LOOKS.set([])
        try:
            yield
        finally:
            _LOOKS.reset(before)
