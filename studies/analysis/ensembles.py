"""The seeds of a study's cells, each as one model, from the predictions that finished runs keep.

In the datasets here the seed draws the split too, so that seeds test different items: of ten seeds
that test 15 % each, 1.5 test an item on average, and two or more test 46 % of all items. A model
that trained on an item is never asked about it. Splits of one's own (`split_column`) are the same
for all seeds, and there an ensemble is of all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callbacks.prediction_table import class_probs, read_predictions
from core.errors import InputError
from experiment.build import class_of
from studies.analysis.ensemble import Ensemble, Member, ensemble_of

if TYPE_CHECKING:
    from studies.analysis.collect import Record

MOST_MEMBERS = 100  # a mean of more is the same mean, and each has a file to be read


@dataclass(frozen=True)
class NoEnsemble:
    """Why the runs of a cell are no ensemble, in words."""

    reason: str


class Ensembles:
    """The ensemble of each cell, made when it is first asked for: tables share cells."""

    def __init__(self):
        self._made: dict[tuple[str, ...], Ensemble | NoEnsemble] = {}

    def of(self, records: "Sequence[Record]") -> Ensemble | NoEnsemble:
        """The runs of one cell, which differ in nothing but their seeds, as one model."""
        key = tuple(record.run for record in records)
        if key not in self._made:
            try:
                self._made[key] = _ensemble(records)
            except InputError as error:  # nobody asked for it, so it costs no other number
                self._made[key] = NoEnsemble(str(error).rstrip("."))
        return self._made[key]


def _ensemble(records: "Sequence[Record]") -> Ensemble | NoEnsemble:
    if len(records) < 2:
        return NoEnsemble("an ensemble takes two seeds")
    predicted = [r for r in records if (r.folder / "predictions.parquet").is_file()][:MOST_MEMBERS]
    if len(predicted) < 2:
        return NoEnsemble(
            "fewer than two seeds have a predictions.parquet, which study run adds without "
            "training where the study says predict: true"
        )
    if not getattr(class_of(predicted[0].config["data"]), "same_items", True):
        return NoEnsemble("each seed draws items of its own, so that none is known to be shared")
    return ensemble_of([_member(record) for record in predicted])


def _member(record: "Record") -> Member:
    table = read_predictions(record.folder, "test")
    probs, annotators = (class_probs(table, who) for who in ("model", "annotators"))
    return Member(record.run, table["index"].to_numpy(), probs, annotators)
