"""Does hard delivery help most where a target made of few votes is far from what all annotators
say?

An item's *target error* is the distance between the distribution of the few votes that this seed
trained on and that of all votes. A delivery's *gain* on an item is by how much its soft NLL,
against all votes, is below that of the reference delivery (soft labels) of the same seed and the
same votes. Only training items have a sparse target, so all of this is about training items; the
paper does not state its items.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from callbacks.prediction_table import class_probs, number_of_classes, read_predictions
from core.errors import InputError
from datamodules import SoftLabels, VoteDataModule
from experiment.build import build_data
from metrics import functional
from studies.analysis.collect import Record
from studies.analysis.data_of_runs import data_key
from studies.analysis.gain_bins import Bin, Gains, bin_edges, gain_by_bin, rank_correlation
from studies.schema.options import ABSENT

if TYPE_CHECKING:
    from studies.figures.kinds.target_error import TargetErrorFigure

Distance = Literal["js", "l1"]


@dataclass(frozen=True)
class TargetError:
    """Gains by (delivery, level of the panels' factor) and by unit (seed)."""

    cells: dict[tuple[Any, Any], dict[tuple, Gains]]
    note: str = ""  # why there is nothing
    runs: int = 0
    used: int = 0  # of the runs, those with predictions

    @property
    def items(self) -> set[int]:
        """How many items a seed has."""
        return {len(gains.gain) for seeds in self.cells.values() for gains in seeds.values()}

    def spearman(self, method: Any, panel: Any = ABSENT) -> dict[tuple, float]:
        """Each seed's rank correlation between target error and gain."""
        seeds = self.cells.get((method, panel), {})
        return {unit: rank_correlation(gains) for unit, gains in seeds.items()}

    def bins(self, panel: Any, number: int) -> dict[Any, list[Bin]]:
        """Bins by delivery; their edges are those of all seeds' items together."""
        cells = self.cells.items()
        of_panel = {method: seeds for (method, at), seeds in cells if at == panel and seeds}
        if not of_panel:
            return {}
        every = [unit for seeds in of_panel.values() for unit in seeds.items()]
        by_unit = {unit: gains.distance for unit, gains in every}
        edges = bin_edges(np.concatenate(list(by_unit.values())), number)
        return {m: gain_by_bin(list(seeds.values()), edges) for m, seeds in of_panel.items()}


def target_errors(
    spec: "TargetErrorFigure", records: list[Record], paired: list[str]
) -> TargetError:
    """What finished runs with a predictions.parquet say, seed by seed."""
    records = spec.select(records)
    if not records:
        return TargetError({}, "none of its runs is finished")
    predicted = [r for r in records if (r.folder / "predictions.parquet").is_file()]
    places = {}
    for record in predicted:
        panel = record.factors[spec.panels] if spec.panels else ABSENT
        places[record.factors[spec.rows], panel, _unit(record, paired)] = record
    if not places:
        note = "none of its runs has a predictions.parquet, which cli.py predict writes"
        return TargetError({}, note, len(records))
    try:
        cells = _gains(spec, places)
    except InputError as error:  # the data is absent or another; the figure's place says so
        return TargetError({}, str(error).rstrip("."), len(records))
    note = ""
    if not any(cells.values()):
        note = f"no seed has predictions of both {spec.reference} and another delivery"
    return TargetError(cells, note, len(records), len(places))


def _gains(
    spec: "TargetErrorFigure", places: dict[tuple[Any, Any, tuple], Record]
) -> dict[tuple[Any, Any], dict[tuple, Gains]]:
    methods = [level for level in spec.levels[spec.rows] if level != spec.reference]
    cells: dict[tuple[Any, Any], dict[tuple, Gains]] = {
        (m, panel): {} for m in methods for panel in spec.panel_levels
    }
    kept: dict[str, VoteDataModule] = {}
    for unit in sorted({unit for _, _, unit in places}, key=str):
        for panel in spec.panel_levels:
            reference = places.get((spec.reference, panel, unit))
            candidates = {method: places.get((method, panel, unit)) for method in methods}
            others = {method: record for method, record in candidates.items() if record}
            if reference is None or not others:
                continue
            data = _data(reference.config, kept)
            votes = reference.config["data"]["init_args"]["votes_per_item"]
            quantile = spec.quantile if spec.items == "high" else None
            distance, chosen = item_distances(data, votes, spec.distance, quantile)
            base = training_nll(reference.folder, data)[chosen]
            for method, record in others.items():
                gain = base - training_nll(record.folder, data)[chosen]
                cells[method, panel][unit] = Gains(distance, gain.numpy())
    return cells


def item_distances(
    data: VoteDataModule, votes_per_item: int, distance: Any, quantile: float | None
) -> tuple[np.ndarray, Tensor]:
    """Target errors of the training items that count, and which these are: all, or with a quantile
    those of high disagreement.

    The sparse target is what soft labels train on. The datamodule draws it again, as it did for
    training.
    """
    assert data.corpus is not None
    rows = data.rows("train")
    sparse = data.bind(SoftLabels(), votes_per_item).targets(0)
    full = data.annotator_probs[torch.from_numpy(rows)]
    chosen = torch.ones(len(rows), dtype=torch.bool)
    if quantile is not None:
        chosen = torch.from_numpy(data.corpus.votes.high_disagreement(quantile)[rows])
    return distances(sparse[chosen], full[chosen], distance).numpy(), chosen


def distances(sparse: Tensor, full: Tensor, distance: Distance) -> Tensor:
    """Row by row: the Jensen-Shannon distance (the square root of the divergence in nats) or the
    sum of absolute differences (L1). Two certain targets that differ are as far apart as can be:

    >>> sparse, full = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> round(distances(sparse, full, "js").item(), 6), distances(sparse, full, "l1").item()
    (0.832555, 2.0)
    """
    if distance == "js":
        return functional.item_js(sparse, full).sqrt()
    return (sparse.double() - full.double()).abs().sum(-1)


def training_nll(folder: Path, data: VoteDataModule) -> Tensor:
    """Soft NLL of each training item against all votes, from a run's predictions, in the
    datamodule's order.
    """
    path = folder / "predictions.parquet"
    table = read_predictions(folder, "train")
    index = torch.tensor(table["index"].to_numpy())
    rows = torch.from_numpy(data.rows("train"))
    same_items = torch.equal(index.sort().values, rows.sort().values)
    if not same_items or number_of_classes(table) != data.num_classes:
        raise InputError(
            f"{path} is not of the training items of its run's config; run predict again."
        )
    probs = torch.from_numpy(class_probs(table, "model"))
    own = torch.empty_like(probs)
    own[data.training_row.cpu()[index]] = probs
    return functional.item_nll(own, data.annotator_probs[rows])


def _unit(record: Record, paired: list[str]) -> tuple:
    return tuple(record.factors.get(factor) for factor in paired)


def _data(config: dict[str, Any], kept: dict[str, VoteDataModule]) -> VoteDataModule:
    """A run's data, loaded once for all runs of its seed; one seed's at a time is kept."""
    key = data_key(config)
    if key not in kept:
        kept.clear()
        kept[key] = build_data(config)
    return kept[key]
