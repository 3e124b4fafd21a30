"""The ensembles of a report's tables: how their entropy is made up, and how its parts go with
people's.
"""

from typing import Any

from studies.analysis.ensemble_score import members_in_words
from studies.report.section import Section
from studies.tables.captions import notices
from studies.tables.listing import Listing
from studies.tables.measures import factor_name
from studies.tables.tables import Table

NAME = "ensembles"
KINDS = ("spearman", "pearson")
PARTS = {
    "entropy": "entropy (nats)",
    "expected_entropy": "of it expected entropy",
    "mutual_information": "of it mutual information",
}


def ensemble_listing(tables: list[Table], section: Section) -> Listing | None:
    """One row for each ensemble, under the name of the first table that shows it; nothing where
    there is none.
    """
    rows: dict[int, dict[str, Any]] = {}
    for table in tables:
        for (row, column), cell in table.cells.items():
            if cell.ensemble is None or id(cell.ensemble.ensemble) in rows:
                continue
            ensemble, spec = cell.ensemble.ensemble, table.spec
            levels = [section.label(level) for level in spec.in_row(row).values()]
            if spec.pivot:
                levels.append(f"{factor_name(spec.columns)} = {section.label(column)}")
            numbers = {part: float(getattr(ensemble, part).mean()) for part in PARTS}
            for kind in KINDS:
                correlations = ensemble.correlations(kind)
                numbers |= {f"{part}_{kind}": value for part, value in correlations.items()}
            rows[id(ensemble)] = {
                "table": spec.name,
                "cell": ", ".join(levels),
                "members": members_in_words([ensemble]),
                "members_mean": float(ensemble.tested.mean()),
                "items": len(ensemble.items),
                "items_left_out": ensemble.left_out,
                **numbers,
            }
    if not rows:
        return None
    shown = {"table": "table", "cell": "runs", "members": "members", "items": "test items"}
    shown |= PARTS | {
        "entropy_spearman": "entropy and people's",
        "expected_entropy_spearman": "expected entropy and people's",
        "mutual_information_spearman": "mutual information and people's",
    }
    records = [record for table in tables for record in table.records]
    caption = [
        *notices(records, section.scale),
        "Each row: the mean prediction of a cell's seeds as one model. Its entropy is the mean of "
        "the members' own (expected entropy) plus their mutual information, which is 0 where all "
        "of them say the same; means over test items, in nats.",
        "Last three columns: Spearman correlation over items with the entropy of people's votes.",
        "Members: the seeds that an item's mean is over, which are those that tested it. With few "
        "of them mutual information is small and uncertain, and so is what it goes with.",
    ]
    return Listing(NAME, "Ensembles over seeds", caption, shown, list(rows.values()))
