"""The one list of scores: what each is called, how it is computed, and how it is shown.

Whoever needs all scores asks here: tests, strata, packs, epochs, tables, figures, claims and help.
`metrics.entries` holds the scores that everybody has. A module of one's own adds to them by being
imported.

>>> [name for name, score in registered().items() if score.every_epoch][:5]
['soft_nll', 'hard_nll', 'kl', 'soft_brier', 'accuracy']
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from torchmetrics import Metric

from core.errors import InputError
from metrics.calibrators import FORMS

Better = Literal["lower", "higher"]
# The best constant prediction: training items' mean distribution, how often each class is their
# majority, or none that depends on them, with a score of 0 or of 1/2. Where it is another one, the
# function that gives it of their distributions, from [N, K] to [K], both numpy.
Floor = Literal["mean", "majority", "zero", "half"] | Callable[[Any], Any]
Function = TypeVar("Function", bound=Callable[..., Any])

# The forms that StratumScores gives every score: `kl_nohlv`, and `kl_original_nohlv` where a
# dataset has other labels of that name.
STRATA = {"nohlv": "unanimous", "hlv": "not unanimous"}
LABEL_SETS = {"original": "original labels"}


@dataclass(frozen=True)
class Score:
    """One entry: a function of (probs, target_probs), both [N, K], and all that is said of it."""

    name: str  # in results.json, and as `val/NAME` in history.json
    function: Callable[..., Any]  # of tables that were checked: a number, or one per item
    label: str  # in tables and figures
    better: Better | None = None  # None: neither direction is, so nothing is set in bold
    unit: str = ""
    digits: int = 4  # that mean something
    per_item: bool = False  # the function gives one number per item; the score is their mean
    every_epoch: bool = False  # cheap enough to be computed on validation items after each epoch
    # the function also takes predictions [..., N, K] of many models beside annotators [N, K], and
    # gives NaN where predictions are: members of a pack are scored in one go, not one by one
    batched: bool = False
    part: str = ""  # of what the function gives, where that has several, each a score
    undefined: str = ""  # why it may have no value, in words
    floor: Floor | None = None  # what a score of 0 skill is; None: there is no skill of it
    ordinal: bool = False  # of classes in an order alone: it joins where a datamodule has such
    reference: str = ""  # who defined it, and what else it is called
    # a torchmetrics class that keeps less than all items; without one it follows from the function
    metric: Callable[..., Metric] | None = None

    def items(self, probs: Tensor, target_probs: Tensor) -> Tensor:
        """One number per item, of a score that is a mean; NaN where a model that diverged says
        NaN.
        """
        values = self.function(probs, target_probs)
        if self.batched:
            return values
        if not isinstance(values, Tensor) or values.shape != probs.shape[:-1]:
            raise InputError(
                f"the score {self.name} gives {_shape(values)} for {len(probs)} items; with "
                "per_item its function must give one number for each."
            )
        return torch.where(probs.isnan().any(-1), torch.nan, values.double())

    def value(self, probs: Tensor, target_probs: Tensor) -> Tensor:
        """The score of all items."""
        if self.per_item:
            return self.items(probs, target_probs).mean()
        return values_of([self], probs, target_probs)[self.name]

    def of_result(self, result: Any) -> Tensor:
        """The score out of what its function gave for all items."""
        result = getattr(result, self.part) if self.part else result
        value = torch.as_tensor(result, dtype=torch.float64)
        if value.numel() != 1:
            raise InputError(
                f"the score {self.name} gives {_shape(value)}; it must be one number. Where there "
                "is one per item and the score is their mean, register it with per_item=True."
            )
        return value

    def of_models(self, probs: Tensor, target_probs: Tensor) -> Tensor:
        """The score of each of several models, whose predictions are [models, N, K]."""
        if self.batched:
            return self.items(probs, target_probs).mean(-1)
        return torch.stack([self.value(table, target_probs) for table in probs])


_scores: dict[str, Score] = {}


def registered(ordinal: bool = False) -> dict[str, Score]:
    """Every score by its name, in the order of registration; those of classes in an order only
    where `ordinal` asks for them.
    """
    return {name: score for name, score in _scores.items() if ordinal or not score.ordinal}


def score_of(metric: str) -> tuple[Score | None, str]:
    """The registered score that a metric of results.json is, and the stratum that it is of.

    >>> score, stratum = score_of("kl_hlv")
    >>> score.name, stratum, score_of("hessian_max")[0]
    ('kl', 'hlv', None)
    """
    scores = registered()
    if metric in scores:
        return scores[metric], ""
    name, _, stratum = metric.rpartition("_")
    return (scores[name], stratum) if stratum in STRATA and name in scores else (None, "")


def add(score: Score) -> None:
    """Add an entry. The same one may come again, as when a notebook's cell is run twice."""
    endings = "|".join((*STRATA, *LABEL_SETS, *FORMS))
    if not re.fullmatch(r"[a-z][a-z0-9_]*", score.name) or score.name in ("loss", "val_loss"):
        raise InputError(
            f"a score cannot be named {score.name!r}; its name must be lower-case letters, digits "
            "and _, and loss and val_loss are taken."
        )
    if re.search(rf"_({endings})$", score.name):
        raise InputError(
            f"a score cannot be named {score.name}: StratumScores and Calibrators give such names "
            "to other forms of scores; choose another ending."
        )
    known = _scores.get(score.name)
    if known and _origin(known) != _origin(score):
        raise InputError(
            f"the score {score.name} is registered twice, by {_origin(known)} and by "
            f"{_origin(score)}; give one of them another name."
        )
    _scores[score.name] = score


def register(
    *,
    label: str,
    name: str = "",
    better: Better | None = None,
    unit: str = "",
    digits: int = 4,
    per_item: bool = False,
    every_epoch: bool = False,
    undefined: str = "",
    floor: Floor | None = None,
    metric: Callable[..., Metric] | None = None,
) -> Callable[[Function], Function]:
    """Make a function of (probs, target_probs) a score, under its own name unless another is given.

    The other arguments are those of `Score`.

    >>> from metrics import register
    >>> @register(label="Doubt about the top class", unit="probability", per_item=True)
    ... def doubt(probs, target_probs):
    ...     return 1 - probs.max(-1).values
    >>> del _scores["doubt"]  # this was an example
    """

    def as_score(function: Function) -> Function:
        given = name or getattr(function, "__name__", "")
        score = Score(given, function, label, better, unit, digits, per_item, every_epoch)
        add(replace(score, undefined=undefined, floor=floor, metric=metric))
        return function

    return as_score


def by_function(scores: Iterable[Score]) -> list[list[Score]]:
    """Scores that are parts of what one function gives stand together, for it to be called once."""
    groups: dict[Any, list[Score]] = {}
    for score in scores:
        groups.setdefault(score.function if score.part else score.name, []).append(score)
    return list(groups.values())


def values_of(group: Sequence[Score], probs: Tensor, target_probs: Tensor) -> dict[str, Tensor]:
    """The scores that one function gives of all items, by name; NaN where predictions are."""
    if group[0].per_item:
        return {score.name: score.value(probs, target_probs) for score in group}
    if probs.isnan().any():
        return {score.name: torch.tensor(torch.nan, dtype=torch.float64) for score in group}
    result = group[0].function(probs, target_probs)
    return {score.name: score.of_result(result) for score in group}


def scores_in_words() -> str:
    """What is measured of every test, for help.

    >>> print(scores_in_words().splitlines()[2])
      kl: KL to annotators, nats, lower is better
    """
    return "\n".join(
        f"  {score.name}: "
        + ", ".join(
            filter(None, [score.label, score.unit, score.better and f"{score.better} is better"])
        )
        + (" (of ordered classes)" if score.ordinal else "")
        + (f" [{score.reference}]" if score.reference else "")
        for score in _scores.values()
    )


def _shape(values: Any) -> str:
    return (
        f"a tensor of shape {list(values.shape)}"
        if isinstance(values, Tensor)
        else f"a {type(values).__name__}"
    )


def _origin(score: Score) -> str:
    function = getattr(score.function, "func", score.function)  # of a partial
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
