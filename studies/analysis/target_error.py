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
from typing import Any, Literal

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
from studies.analysis.statistics import bootstrap_interval
from studies.report.section import ABSENT, FigureSpec

NO_ERROR = 1e-6  # a distance below it is rounding: one vote more or less is above 1e-4
Distance = Literal["js", "l1"]


@dataclass(frozen=True)
class Gains:
    """Of one delivery, number of votes and seed: item by item."""

    distance: np.ndarray
    gain: np.ndarray  # in nats; above 0 where this delivery is better than the reference


@dataclass(frozen=True)
class Bin:
    """The mean gain over the items whose target error lies in a range, `low` excluded (the first
    bin is of targets without error).
    """

    low: float
    high: float
    distance: float  # mean over items
    items: int  # of all seeds together
    seeds: int
    gain: float  # mean over seeds of their means over items
    gain_low: float  # 95 % bootstrap interval over seeds; NaN for one
    gain_high: float


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
        """Each seed's rank correlation between target error and gain; NaN where either is the same
        for all items.
        """
        return {
            unit: _spearman(gains) for unit, gains in self.cells.get((method, panel), {}).items()
        }

    def bins(self, panel: Any, number: int) -> dict[Any, list[Bin]]:
        """By delivery; the edges are those of all seeds' items together, so that every seed's bins
        are the same.
        """
        of_panel = {
            method: seeds
            for (method, place), seeds in self.cells.items()
            if place == panel and seeds
        }
        if not of_panel:
            return {}
        by_unit = {
            unit: gains.distance for seeds in of_panel.values() for unit, gains in seeds.items()
        }
        edges = bin_edges(np.concatenate(list(by_unit.values())), number)
        return {
            method: gain_by_bin(list(seeds.values()), edges) for method, seeds in of_panel.items()
        }


def target_errors(spec: FigureSpec, records: list[Record], paired: list[str]) -> TargetError:
    """What finished runs with a predictions.parquet say, seed by seed."""
    records = spec.select(records)
    if not records:
        return TargetError({}, "none of its runs is finished")
    places = {
        (
            record.factors[spec.rows],
            record.factors[spec.panels] if spec.panels else ABSENT,
            _unit(record, paired),
        ): record
        for record in records
        if (record.folder / "predictions.parquet").is_file()
    }
    if not places:
        return TargetError(
            {},
            "none of its runs has a predictions.parquet, which cli.py predict writes",
            len(records),
        )
    try:
        cells = _gains(spec, places)
    except InputError as error:  # the data is absent or another; the figure's place says so
        return TargetError({}, str(error).rstrip("."), len(records))
    note = (
        ""
        if any(cells.values())
        else f"no seed has predictions of both {spec.reference} and another delivery"
    )
    return TargetError(cells, note, len(records), len(places))


def _gains(
    spec: FigureSpec, places: dict[tuple[Any, Any, tuple], Record]
) -> dict[tuple[Any, Any], dict[tuple, Gains]]:
    methods = [level for level in spec.levels[spec.rows] if level != spec.reference]
    cells: dict[tuple[Any, Any], dict[tuple, Gains]] = {
        (m, panel): {} for m in methods for panel in spec.panel_levels
    }
    kept: dict[str, VoteDataModule] = {}
    for unit in sorted({unit for _, _, unit in places}, key=str):
        for panel in spec.panel_levels:
            reference = places.get((spec.reference, panel, unit))
            others = {
                method: result
                for method in methods
                if (result := places.get((method, panel, unit)))
            }
            if reference is None or not others:
                continue
            data = _data(reference.config, kept)
            votes = reference.config["data"]["init_args"]["votes_per_item"]
            distance, chosen = item_distances(
                data, votes, spec.distance, spec.quantile if spec.items == "high" else None
            )
            base = training_nll(reference.folder, data)[chosen]
            for method, record in others.items():
                cells[method, panel][unit] = Gains(
                    distance, (base - training_nll(record.folder, data)[chosen]).numpy()
                )
    return cells


def item_distances(
    data: VoteDataModule, votes_per_item: int, distance: Any, quantile: float | None
) -> tuple[np.ndarray, Tensor]:
    """Between the sparse and the full target of the training items, and which of them count: those
    of high disagreement, where a quantile is given.

    The sparse target is what soft labels train on: the datamodule itself draws it, as it did for
    training.
    """
    assert data.corpus is not None
    rows = data.rows("train")
    sparse, full = (
        data.bind(SoftLabels(), votes_per_item).targets(0),
        data.annotator_probs[torch.from_numpy(rows)],
    )
    chosen = torch.ones(len(rows), dtype=torch.bool)
    if quantile is not None:
        chosen = torch.from_numpy(data.corpus.votes.high_disagreement(quantile)[rows])
    return distances(sparse[chosen], full[chosen], distance).numpy(), chosen


def distances(sparse: Tensor, full: Tensor, distance: Distance) -> Tensor:
    """Row by row: the Jensen-Shannon distance (the square root of the divergence in nats) or the
    sum of absolute differences (L1).

    >>> sparse, full = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> # the largest of either
    >>> round(distances(sparse, full, "js").item(), 6), distances(sparse, full, "l1").item()
    (0.832555, 2.0)
    """
    if distance == "js":
        return functional.item_js(sparse, full).sqrt()
    return (sparse.double() - full.double()).abs().sum(-1)


def training_nll(folder: Path, data: VoteDataModule) -> Tensor:
    """Soft NLL of each training item against all votes, in the datamodule's order, from a run's
    predictions.
    """
    path = folder / "predictions.parquet"
    table = read_predictions(folder, "train")
    index = torch.tensor(table["index"].to_numpy())
    rows = torch.from_numpy(data.rows("train"))
    order = index.argsort()
    if (
        not torch.equal(index[order], rows.sort().values)
        or number_of_classes(table) != data.num_classes
    ):
        raise InputError(
            f"{path} is not of the training items of its run's config; run predict again."
        )
    probs = torch.from_numpy(class_probs(table, "model"))
    own = torch.empty_like(probs)
    own[data.training_row.cpu()[index]] = probs
    return functional.item_nll(own, data.annotator_probs[rows])


def bin_edges(distance: np.ndarray, number: int) -> np.ndarray:
    """The upper edges of a bin for targets without error and of `number` bins that hold equally
    many of the others; ties can make them fewer.

    Of CIFAR-10H almost half of all items are unanimous, so their few votes are exact; bins of equal
    mass over all items would be mostly of those, and bins of equal width mostly empty.

    >>> bin_edges(np.array([0.0, 0.0, 1.0, 2.0, 3.0, 4.0]), 2).tolist()
    [0.0, 2.5, 4.0]
    """
    errors = distance[distance > NO_ERROR]
    if not len(errors):
        return np.zeros(1)
    return np.append(0.0, np.unique(np.quantile(errors, np.linspace(0, 1, number + 1)[1:])))


def gain_by_bin(seeds: list[Gains], edges: np.ndarray) -> list[Bin]:
    """Bins in which some seed has no item are left out: a mean over other seeds than elsewhere
    would not be comparable.
    """
    number = len(edges)
    bins = [
        np.searchsorted(edges, np.where(g.distance > NO_ERROR, g.distance, 0)).clip(max=number - 1)
        for g in seeds
    ]
    counts = np.stack([np.bincount(b, minlength=number) for b in bins])
    gains = np.stack(
        [np.bincount(b, weights=g.gain, minlength=number) for b, g in zip(bins, seeds, strict=True)]
    )
    errors = np.sum(
        [
            np.bincount(b, weights=g.distance, minlength=number)
            for b, g in zip(bins, seeds, strict=True)
        ],
        axis=0,
    )
    result = []
    for place in np.flatnonzero(counts.all(0)):
        means = gains[:, place] / counts[:, place]
        low, high = bootstrap_interval(means) if len(means) > 1 else (np.nan, np.nan)
        items = int(counts[:, place].sum())
        lower = float(edges[place - 1]) if place else 0.0
        result.append(
            Bin(
                lower,
                float(edges[place]),
                float(errors[place] / items),
                items,
                len(means),
                float(means.mean()),
                low,
                high,
            )
        )
    return result


def _spearman(gains: Gains) -> float:
    if len(gains.gain) < 2:
        return float("nan")
    return functional.correlation(
        torch.from_numpy(gains.distance), torch.from_numpy(gains.gain), "spearman"
    ).item()


def _unit(record: Record, paired: list[str]) -> tuple:
    return tuple(record.factors.get(factor) for factor in paired)


def _data(config: dict[str, Any], kept: dict[str, VoteDataModule]) -> VoteDataModule:
    """A run's data, loaded once for all runs of its seed; one seed's at a time is kept."""
    key = data_key(config)
    if key not in kept:
        kept.clear()
        kept[key] = build_data(config)
    return kept[key]
