"""A study's report: tables (md, csv, tex), figures (png, svg), TensorBoard and one report.html that
needs no other file and no network.

The `report` section of a study's YAML says what is in it; docs/study-reference.md lists all of its
options. Seeds (the study's `paired` factors) are what means, SDs and pairs are over; any other
factor must be shown or fixed, because a mean over it would mix different experiments.
`studies.report.copy` writes a small copy to be kept in a repository.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from studies.analysis.claims.claim_values import Measured
from studies.analysis.claims.claims import Judged, judge
from studies.analysis.claims.claims_listing import claims_listing
from studies.analysis.collect import Collection
from studies.analysis.comparison.comparison import Comparison
from studies.analysis.comparison.kept_comparisons import compared
from studies.analysis.data_of_runs import DataOfRuns
from studies.analysis.uncertainty.item_spreads import ItemSpreads
from studies.figures.figure_spec import Around
from studies.figures.rendered_figure import RenderedFigure, rendered_figure
from studies.plan.known_data import check_data
from studies.plan.study import Study
from studies.report.comparison_part import rendered_comparison
from studies.report.files import check_report, write_files
from studies.report.section import Section
from studies.report.section_reader import read_section
from studies.tables.captions import notices
from studies.tables.changes import changes_listing
from studies.tables.dataset_statistics import dataset_listing
from studies.tables.ensemble_listing import ensemble_listing
from studies.tables.listing import Listing
from studies.tables.mode_shift_part import mode_shift_listing
from studies.tables.selection_listing import selection_listings
from studies.tables.table_worth import with_worth
from studies.tables.tables import Table, build_table


@dataclass(frozen=True)
class Report:
    """Everything that a report shows, before it becomes files."""

    study: Study
    section: Section
    collection: Collection
    tables: list[Table]
    figures: list[RenderedFigure]
    claims: list[Judged]
    datasets: list[Listing] = field(default_factory=list)
    changes: list[Listing] = field(default_factory=list)  # and mode shifts, and ensembles
    selections: list[Listing] = field(default_factory=list)  # the options that selections chose
    runs: Path = Path("runs")

    @property
    def claims_listing(self) -> Listing | None:
        """The table of claims, if there are any."""
        records = list(self.collection.finished.values())
        return (
            claims_listing(self.claims, notices(records, self.section.scale))
            if self.claims
            else None
        )

    @property
    def listings(self) -> list[Listing]:
        """Every table that is not one of `tables`."""
        of_figures = [listing for drawn in self.figures for listing in drawn.listings]
        return (
            self.datasets
            + self.selections
            + self.changes
            + of_figures
            + ([self.claims_listing] if self.claims_listing else [])
        )


def write_report(study: Study, runs: Path, out: Path) -> Path:
    """Write the report of what is finished so far to `out` and return the path of its report.html.

    A report can be written at any time: runs that are missing or cut short are listed and not
    counted.
    """
    check_report(study, out)
    return write_files(build_report(study, Path(runs), out), out)


def build_report(study: Study, runs: Path, out: Path | None = None) -> Report:
    """Compute and draw everything.

    `out` is where comparisons between networks are kept from one report to the next.
    """
    collection = Collection.of(study, runs)
    check_data((record.config, record.folder) for record in collection.finished.values())
    section = read_section(study, collection)
    data = DataOfRuns()
    items = ItemSpreads(data)
    tables = [
        build_table(spec, collection.records(spec.grid), study.paired, items)
        for spec in section.tables
    ]
    datasets = [
        dataset_listing(spec, collection.records(spec.grid), section, data)
        for spec in section.datasets
    ]
    changes = [
        changes_listing(spec, collection.records(spec.grid), section, study.paired)
        for spec in section.changes
    ]
    changes += [
        mode_shift_listing(spec, collection.records(spec.grid), section, study.paired, data)
        for spec in section.mode_shifts
    ]
    tables = with_worth(tables)
    if listing := ensemble_listing(tables, section):
        changes.append(listing)
    around, for_claims = Around(section, study.paired, data), {}
    figures = []
    for spec in section.figures:
        records = spec.select(collection.records(spec.grid))
        found: Any = spec.compute(records, around)
        figures.append(rendered_figure(spec, records, found, around))
        if spec.for_claims:
            for_claims[spec.name] = found
    comparisons: dict[str, Comparison | str] = {}
    for spec in section.comparisons:
        records = collection.records(spec.grid)
        comparisons[spec.name], notes = compared(spec, records, runs, out)
        figures += rendered_comparison(
            spec, comparisons[spec.name], notes, spec.select(records), section
        )
    measured = Measured(collection, study.paired, for_claims, comparisons, section.label, items)
    claims = [judge(claim, measured) for claim in section.claims]
    message = notices(list(collection.finished.values()), section.scale)
    selections = selection_listings(study, collection.stage, section, message)
    return Report(
        study, section, collection, tables, figures, claims, datasets, changes, selections, runs
    )
