"""Data maps of several seeds together: where each training item lies by what all models of one kind
said of it in their epochs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from callbacks.cartography.records import read_run, record_path
from core.errors import InputError
from metrics import functional
from metrics.cartography import DataMap, map_across_runs
from studies.analysis.collect import Record
from studies.analysis.data_of_runs import DataOfRuns, check_of_data
from studies.report.section import Section
from studies.schema.options import ABSENT
from studies.tables.captions import notices, seeds_of
from studies.tables.listing import Listing

if TYPE_CHECKING:
    from studies.figures.kinds.data_map import DataMapFigure

STRATA = {"nohlv": "NoHLV", "hlv": "HLV"}
SPLIT = "train"


@dataclass(frozen=True)
class RunsMap:
    """The common map of the runs at one level, and what is known of its items."""

    found: DataMap
    unanimous: np.ndarray
    uncertainties: dict[str, np.ndarray]  # of people, by name; maps are coloured by the first
    runs: int

    def mask(self, stratum: str) -> np.ndarray:
        """Which items are of a stratum."""
        return self.unanimous if stratum == "nohlv" else ~self.unanimous

    def correlation(self, coordinate: str, uncertainty: str) -> float:
        """Spearman's, over all items; NaN where either is the same for all."""
        model, uncertainty_of_annotators = (
            getattr(self.found, coordinate),
            self.uncertainties[uncertainty],
        )
        return functional.correlation(
            torch.from_numpy(model), torch.from_numpy(uncertainty_of_annotators), "spearman"
        ).item()


class Maps(NamedTuple):
    """What a figure of data maps shows."""

    records: list[Record]
    maps: dict[Any, RunsMap]  # by level
    absent: list[str]  # which levels have none, and why


def data_maps(
    spec: "DataMapFigure", records: list[Record], data: DataOfRuns
) -> tuple[dict[Any, RunsMap], list[str]]:
    """The map of every level of the panels' factor, and which levels have none, and why."""
    maps, absent = {}, []
    for level in spec.panel_levels:
        of_level = [
            record for record in records if level is ABSENT or record.factors[spec.panels] == level
        ]
        try:
            maps[level] = map_of(of_level, spec.last, data)
        except InputError as error:
            absent.append(f"Not drawn{'' if level is ABSENT else f' for {level}'}: {error}")
    return maps, absent


def map_of(records: list[Record], last: int | None, data: DataOfRuns) -> RunsMap:
    """Of the runs that have a record of their epochs."""
    recorded = [
        r
        for r in records
        if record_path(r.folder, SPLIT).is_file()
        and (r.folder / f"cartography_{SPLIT}.parquet").is_file()
    ]
    if not recorded:
        raise InputError(
            "none of its finished runs has a cartography_train.parquet, which the callback "
            "DataCartography writes."
        )
    items, runs = zip(*(read_run(record.folder, SPLIT) for record in recorded), strict=True)
    common, result = map_across_runs(items, runs, last)
    source = data.of(recorded[0].config)
    check_of_data(common, None, source, recorded[0].folder)
    if not source.same_items and len(recorded) > 1:
        raise InputError(
            f"every seed of {type(source).__name__} draws other items, so that its runs have no "
            "map in common."
        )
    uncertainties = {name: values[common] for name, values in source.human_uncertainties().items()}
    return RunsMap(result, source.annotator_votes.unanimous[common], uncertainties, len(recorded))


def maps_listing(
    spec: "DataMapFigure", maps: dict[Any, RunsMap], records: list[Record], section: Section
) -> Listing:
    """Mean coordinates by level and stratum, how much of the variability lies between seeds, and
    correlations with each human uncertainty.
    """
    rows = []
    for level, result in maps.items():
        for stratum, name in STRATA.items():
            mask = result.mask(stratum)
            row = {
                "target": "all" if level is ABSENT else section.label(level),
                "stratum": name,
                "items": int(mask.sum()),
            }
            rows.append(row | _means(result.found, mask))
        row = {"target": rows[-1]["target"], "stratum": "all", "items": len(result.unanimous)}
        rows.append(row | _means(result.found, np.ones_like(result.unanimous)))
        for uncertainty in result.uncertainties:
            key = _key(uncertainty)
            for coordinate in ("confidence", "variability"):
                rows[-1][f"{coordinate}_and_{key}"] = result.correlation(coordinate, uncertainty)
    columns = dict.fromkeys(column for row in rows for column in row)
    rows = [{column: row.get(column, float("nan")) for column in columns} for row in rows]
    names = {_key(name): name for result in maps.values() for name in result.uncertainties}
    shown = {
        "target": "",
        "stratum": "stratum",
        "items": "items",
        "confidence": "mean confidence",
        "variability": "mean variability",
    }
    shown["between"] = "share of variability² between seeds"
    for key, name in names.items():
        shown |= {
            f"{short}_and_{key}": f"Spearman of {short} and {name}"
            for short in ("confidence", "variability")
        }
    messages = [*notices(records, section.scale), *maps_caption(spec, maps)]
    return Listing(
        f"{spec.name}-maps", f"{spec.title}: coordinates and correlations", messages, shown, rows
    )


def maps_caption(spec: "DataMapFigure", maps: dict[Any, RunsMap]) -> list[str]:
    """How to read the maps."""
    when = f"the last {spec.last} epochs" if spec.last else "all epochs"
    uncertainty = next(iter(next(iter(maps.values())).uncertainties))
    return [
        f"Each dot is a training item, over {when} of "
        f"{seeds_of({result.runs for result in maps.values()})} together: the mean (confidence) "
        "and the SD "
        "(variability) of the probability of the class that is likeliest in the labels trained on.",
        f"Colour: people's {uncertainty}. Strata are by people's labels: NoHLV is unanimous. The "
        "margins show how items are spread.",
    ]


def _means(result: DataMap, mask: np.ndarray) -> dict[str, float]:
    if not mask.any():
        return dict.fromkeys(("confidence", "variability", "between"), float("nan"))
    squared = (result.variability[mask] ** 2).mean()
    between = float((result.between_runs[mask] ** 2).mean() / squared) if squared else float("nan")
    return {
        "confidence": float(result.confidence[mask].mean()),
        "variability": float(result.variability[mask].mean()),
        "between": between,
    }


def _key(name: str) -> str:
    """
    >>> _key("annotators' entropy (nats)")
    'annotators_entropy'
    """
    return "_".join("".join(c for c in name.split(" (")[0] if c.isalnum() or c == " ").split())
