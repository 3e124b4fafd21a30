"""torchmetrics classes of scores that are means, and collections of scores:
`update(probs, target_probs)`, exact under DDP with shards of any size.

Means keep a sum and a count; measures that need all items keep them and gather them at the end, so
nothing is averaged over ranks.

Tensors, numpy arrays and lists are taken, and what is no distribution is refused: by means in
`update` where one process runs on a CPU, and else in `compute`, over all ranks, so that no device
is waited for and no rank is left waiting. Measures of all items look at them in `compute`.

>>> score = SoftNLL(); score.update(torch.tensor([[0.5, 0.5]]),
...     torch.tensor([[1.0, 0.0]])); score.compute().item()
0.6931471805599453
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import torch
from torch import Tensor
from torchmetrics import Metric, MetricCollection

from metrics import per_item
from metrics.all_items import AllItems, RegisteredScore
from metrics.inputs import Values, as_tables, check, check_evidence, check_rows, evidence
from metrics.registry import Score

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

    def __init__(
        self, nan_ok: bool = False, function: Callable[[Tensor, Tensor], Tensor] | None = None
    ):
        """
        Args:
            nan_ok: Predictions of NaN make the score NaN instead of an error, so that a training
                that diverges is told by its scores.
            function: What gives each item's number; by default the class's own `of_item`.
        """
        super().__init__()
        self.nan_ok, self.function = nan_ok, function or type(self).of_item
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("items", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        # evidence of both tables
        self.add_state(
            "seen", torch.full((2, 4), -torch.inf, dtype=torch.float64), dist_reduce_fx="max"
        )

    def update(self, probs: Values, target_probs: Values) -> None:
        """Add a batch to the sums."""
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
        scores = self.function(*tables)
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
        """The mean over all items so far."""
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


def metrics_of(scores: Sequence[Score], nan_ok: bool = False) -> dict[str, Metric]:
    """The torchmetrics of scores that one function gives: its own where an entry names one, else
    what follows from the function. A mean that is of tests alone is taken of the items that others
    keep there anyway: at once, which is quicker than batch by batch.
    """
    first = scores[0]
    given = {"nan_ok": True} if nan_ok else {}
    if first.metric:
        return {score.name: score.metric(**given) for score in scores if score.metric}
    if first.per_item and first.every_epoch:
        return {first.name: MeanOverItems(function=first.items, **given)}
    return {first.name: RegisteredScore(scores, **given)}


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
        """Give a batch to every score."""
        with self._one_look():
            super().update(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Give a batch to every score, and return the scores of that batch."""
        with self._one_look():
            return super().forward(*args, **kwargs)

    @contextmanager
    def _one_look(self) -> Iterator[None]:
        before = _LOOKS.set([])
        try:
            yield
        finally:
            _LOOKS.reset(before)
