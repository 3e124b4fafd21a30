"""Single test items with what people and models say about them.

Which items is decided by a rule, so that nobody picks those that suit.

- disagreement: those on which annotators disagree most (largest entropy)
- same_class: the same among the items for which every model shown predicts the annotators' majority
  class: only their doubts differ
- spread: from the largest agreement to the largest disagreement, in equal steps of rank

Ties go to the item that comes first in the data. Models are those of the first seed that has
predictions of all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from callbacks.prediction_table import class_probs, number_of_classes, read_predictions
from core.errors import InputError
from metrics import functional
from studies.analysis.collect import Record
from studies.analysis.data_of_runs import DataOfRuns, check_of_data
from studies.schema.options import ABSENT

if TYPE_CHECKING:
    from studies.figures.kinds.examples import Examples


@dataclass(frozen=True)
class Example:
    """One item: how it looks to people, and the distributions of annotators and models over its
    classes.
    """

    panel: Any  # the level of the panels' factor
    row: int  # in the data
    item: str | Tensor  # a text, or an image as bytes [3, height, width]
    class_names: tuple[str, ...]
    annotators: Tensor
    models: dict[Any, Tensor]  # by level of the rows' factor

    def kl(self, level: Any) -> float:
        """KL(annotators || model) of this item, in nats."""
        return functional.item_kl(self.models[level][None], self.annotators[None]).item()


def find_examples(
    spec: "Examples", records: list[Record], paired: list[str], data: DataOfRuns
) -> tuple[list[Example], list[str]]:
    """The examples of every panel, and which panels have none, and why."""
    examples, absent = [], []
    for panel in spec.panel_levels:
        of_panel = [
            record for record in records if panel is ABSENT or record.factors[spec.panels] == panel
        ]
        try:
            examples += _of_panel(spec, of_panel, panel, paired, data)
        except InputError as error:
            absent.append(f"Not drawn{'' if panel is ABSENT else f' for {panel}'}: {error}")
    return examples, absent


def _of_panel(
    spec: "Examples", records: list[Record], panel: Any, paired: list[str], data: DataOfRuns
) -> list[Example]:
    runs = _first_seed(spec, records, paired)
    index, annotators, models = _test_predictions(runs)
    chosen = RULES[spec.choose](annotators, torch.stack(list(models.values())), spec.number)
    if not len(chosen):
        raise InputError(
            "there is no test item for which all models predict the annotators' majority class."
        )
    source = data.of(next(iter(runs.values())).config)
    check_of_data(index, annotators.shape[1], source, next(iter(runs.values())).folder)
    rows = index[chosen.numpy()]
    names = tuple(source.class_names) or tuple(str(k) for k in range(source.num_classes))
    return [
        Example(
            panel,
            int(row),
            item,
            names,
            annotators[place],
            {level: probs[place] for level, probs in models.items()},
        )
        for place, row, item in zip(chosen.tolist(), rows, source.original(rows), strict=True)
    ]


def _first_seed(spec: "Examples", records: list[Record], paired: list[str]) -> dict[Any, Record]:
    """The runs of the first unit for which every level has predictions."""
    levels = spec.levels[spec.rows]
    units: dict[tuple, dict[Any, Record]] = {}
    for record in records:
        if (record.folder / "predictions.parquet").is_file():
            units.setdefault(tuple(record.factors.get(factor) for factor in paired), {})[
                record.factors[spec.rows]
            ] = record
    whole = next((result for result in units.values() if len(result) == len(levels)), None)
    if whole is None:
        raise InputError(
            "no seed has a predictions.parquet, which cli.py predict writes, of each of "
            f"{', '.join(map(str, levels))}."
        )
    return {level: whole[level] for level in levels}


def _test_predictions(runs: dict[Any, Record]) -> tuple[np.ndarray, Tensor, dict[Any, Tensor]]:
    """Row numbers of the test items in order, their annotators' distributions, and each model's."""
    index, annotators, models = np.array([]), torch.empty(0), {}
    for level, record in runs.items():
        path = record.folder / "predictions.parquet"
        table = read_predictions(record.folder, "test").sort_by("index")
        if models and (
            annotators.shape[1] != number_of_classes(table)
            or not np.array_equal(index, table["index"].to_numpy())
        ):
            raise InputError(
                f"{path} is of other test items than those of the other models; its data or its "
                "split differs."
            )
        index = table["index"].to_numpy()
        annotators, models[level] = (
            torch.from_numpy(class_probs(table, who)) for who in ("annotators", "model")
        )
    return index, annotators, models


def most_disagreement(annotators: Tensor, models: Tensor, number: int) -> Tensor:
    """Where annotators' entropy is largest.

    >>> most_disagreement(torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5]]), torch.empty(0),
    ...     2).tolist()
    [1, 2]
    """
    return functional.entropy(annotators).argsort(descending=True, stable=True)[:number]


def same_class(annotators: Tensor, models: Tensor, number: int) -> Tensor:
    """The same where all models predict the majority class.

    >>> people = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]])
    >>> # the model disagrees on the last
    >>> same_class(people, torch.tensor([[[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]]]), 2).tolist()
    [1, 0]
    """
    alike = torch.where((models.argmax(-1) == annotators.argmax(-1)).all(0))[0]
    return alike[most_disagreement(annotators[alike], models, number)]


def spread(annotators: Tensor, models: Tensor, number: int) -> Tensor:
    """From agreement to disagreement.

    >>> spread(torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.9, 0.1]]), torch.empty(0), 2).tolist()
    [1, 0]
    """
    order = functional.entropy(annotators).argsort(stable=True)
    return order[np.unique(np.linspace(0, len(order) - 1, number).round().astype(int))]


RULES: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "disagreement": most_disagreement,
    "same_class": same_class,
    "spread": spread,
}
