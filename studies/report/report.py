"""A study's report: tables (md, csv, tex), figures (png, svg), TensorBoard and one report.html that
needs no other file and no network.

The `report` section of a study's YAML says what is in it. All entries but `name` and those marked *
have defaults.

    report:
      scale: 30 epochs instead of 200         # said beside every table and figure: the scale was reduced
      comment: What this shows, and what not  # a paragraph of the author's, at the top
      labels: {MajorityVote: majority vote}   # how levels are called in tables and figures
      datasets:                               # statistics of the data itself: items, classes, votes per item, entropy of votes
        - name: table1
          rows: dataset                       # * a factor each of whose levels is one dataset
          published: epistemic.table1         # as in tables
      tables:
        - name: sweep                         # names the files
          title: Soft NLL by votes per item
          grid: sweep                         # of the study; the first one by default
          where: {data.network: ResNet18}     # a level, or a list of levels, of factors
          rows: data.delivery                 # * a factor
          groups: dataset                     # a factor: a block of rows for each of its levels, with its own tests and its own best
          columns: [soft_nll, accuracy]       # * metrics, or one factor together with `metric: soft_nll`
          reference: SoftLabels               # a row; the others are tested against it, pair by pair
          test: wilcoxon                      # or t
          alternative: two-sided              # or less, greater: what the row is, compared with the reference
          family: holm                        # adjust p over all cells of the table
          published: basins.table2            # entry of studies/published/basins.yaml, shown beside ours; with groups, one that has groups
      changes:                                # of one level from another in percent, with intervals: by group, and on average over groups
        - name: table4
          groups: dataset                     # *
          rows: data.delivery                 # *
          level: SoftLabels                   # *
          reference: MajorityVote             # * what the percentages are of
          columns: [kl, entropy_pearson]      # * metrics
          published: epistemic.table4
      mode_shifts:                            # gains in accuracy over a reference, split by whether the labels' class changed; from predictions.parquet
        - name: shift
          groups: network                     # *
          rows: data.targets                  # *
          reference: original                 # *
      figures:
        - {name: a, kind: points, metric: soft_nll, rows: data.delivery}                             # every seed, mean, interval
        - {name: b, kind: lines, metric: soft_nll, x: data.votes_per_item, lines: data.delivery}     # mean and SD over a number
        - {name: c, kind: curves, rows: data.delivery}                                               # from predictions.parquet
        - {name: d, kind: history, metric: val/soft_nll, lines: data.delivery, panels: dataset}      # a column of history.json by epoch
        - {name: m, kind: data_map, panels: data.targets, last: 5}                                   # of all seeds, by stratum; from DataCartography
        - {name: h, kind: entropy_histogram, panels: dataset, bins: 20}                              # of annotators, from the data
        - name: i                             # items beside annotators' distribution and each model's; never in a copy of the report
          kind: examples                      # from predictions.parquet of one seed, and the data
          rows: data.delivery                 # * the models
          panels: dataset                     # a factor
          choose: disagreement                # where annotators disagree most; or same_class, spread: see `studies.figures.examples`
          number: 3                           # of items in each panel
        - name: e                             # gain of each delivery over a reference by the error of its sparse targets
          kind: target_error                  # from predictions.parquet of runs with data.votes_per_item, on training items
          rows: data.delivery                 # *
          reference: SoftLabels               # *
          panels: data.votes_per_item         # a factor; without it, where must fix it
          distance: js                        # or l1
          items: all                          # or high: of high disagreement, from this quantile of annotators' entropy on
          quantile: 0.9
          bins: 6                             # of equal mass, after one for targets without error
      comparisons:                            # of networks with each other, from checkpoints; kept in representations.json until one changes
        - name: basins                        # a table, and the figures NAME-barrier, NAME-cka, NAME-grad_cam and NAME-grad_cam_high
          rows: data.delivery                 # * the methods
          where: {data.delivery: [SoftLabels, Multipass]}
          points: 11                          # of the line between two networks
          quantile: 0.9                       # from which an item is in the high-entropy slice
          published: {cka: basins.cka_within} # facts of studies/published by figure; other figures
              name one: published: basins.loss_barrier
      claims:                                 # tested on the runs; `studies.analysis.claims.claims` says how
        - {id: nll, claim: SLS scores better., paper: Table 2, test: less, metric: soft_nll, rows:
          data.delivery, level: Multipass, reference: SoftLabels}

All of them take title, grid and where as tables do. Points, lines and histories take a list of
metrics, too: one panel each (for histories with panels, one row of panels each, and panels may be
left out). Seeds (the study's `paired` factors) are what means, SDs and pairs are over; any other
factor must be shown or fixed, because a mean over it would mix different experiments. What
selections chose (`studies.plan.selection`) is listed by itself. `studies.report.copy` writes a
small copy to be kept in a repository.
"""  # noqa: E501

from dataclasses import dataclass, field
from pathlib import Path

from studies.analysis.claims.claim_values import Measured
from studies.analysis.claims.claims import Judged, claims_listing, judge
from studies.analysis.collect import Collection
from studies.analysis.comparison.comparison import Comparison
from studies.analysis.comparison.kept_comparisons import compared
from studies.analysis.data_of_runs import DataOfRuns
from studies.analysis.target_error import TargetError, target_errors
from studies.figures.rendered_figure import RenderedFigure, drawn_comparison, drawn_figure
from studies.plan.known_data import check_data
from studies.plan.study import Study
from studies.report.files import check_report, write_files
from studies.report.section import Section
from studies.report.section_reader import read_section
from studies.tables.captions import notices
from studies.tables.changes import changes_listing
from studies.tables.dataset_statistics import dataset_listing
from studies.tables.listing import Listing
from studies.tables.mode_shift_part import mode_shift_listing
from studies.tables.selection_listing import selection_listings
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
    changes: list[Listing] = field(default_factory=list)  # and mode shifts
    selections: list[Listing] = field(default_factory=list)  # the options that selections chose
    runs: Path = Path("runs")

    @property
    def claims_listing(self) -> Listing | None:
        records = list(self.collection.finished.values())
        return (
            claims_listing(self.claims, notices(records, self.section.scale))
            if self.claims
            else None
        )

    @property
    def listings(self) -> list[Listing]:
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
    tables = [
        build_table(spec, collection.records(spec.grid), study.paired) for spec in section.tables
    ]
    data = DataOfRuns()
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
    errors: dict[str, TargetError] = {}
    figures = []
    for spec in section.figures:
        records = collection.records(spec.grid)
        if spec.kind == "target_error":
            errors[spec.name] = target_errors(spec, records, study.paired)
        figures.append(
            drawn_figure(spec, records, section, study.paired, errors.get(spec.name), data)
        )
    comparisons: dict[str, Comparison | str] = {}
    for spec in section.comparisons:
        records = collection.records(spec.grid)
        comparisons[spec.name], notes = compared(spec, records, runs, out)
        figures += drawn_comparison(
            spec, comparisons[spec.name], notes, spec.select(records), section
        )
    measured = Measured(collection, study.paired, errors, comparisons, section.label)
    claims = [judge(claim, measured) for claim in section.claims]
    message = notices(list(collection.finished.values()), section.scale)
    selections = selection_listings(study, collection.stage, section, message)
    return Report(
        study, section, collection, tables, figures, claims, datasets, changes, selections, runs
    )
