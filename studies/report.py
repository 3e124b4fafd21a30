"""A study's report: tables (md, csv, tex), figures (png, svg), TensorBoard and one report.html that needs no other file and no network.

The `report` section of a study's YAML says what is in it. All entries but `name` and those marked * have defaults.

    report:
      scale: 30 epochs instead of 200         # said beside every table and figure: the scale was reduced
      labels: {MajorityVote: majority vote}   # how levels are called in tables and figures
      tables:
        - name: sweep                         # names the files
          title: Soft NLL by votes per item
          grid: sweep                         # of the study; the first one by default
          where: {data.network: ResNet18}     # a level, or a list of levels, of factors
          rows: data.delivery                 # * a factor
          columns: [soft_nll, accuracy]       # * metrics, or one factor together with `metric: soft_nll`
          reference: SoftLabels               # a row; the others are tested against it, pair by pair
          test: wilcoxon                      # or t
          alternative: two-sided              # or less, greater: what the row is, compared with the reference
          family: holm                        # adjust p over all cells of the table
          published: basins.table2            # entry of studies/published/basins.yaml, shown beside ours
      figures:
        - {name: a, kind: points, metric: soft_nll, rows: data.delivery}                             # every seed, mean, interval
        - {name: b, kind: lines, metric: soft_nll, x: data.votes_per_item, lines: data.delivery}     # mean and SD over a number
        - {name: c, kind: curves, rows: data.delivery}                                               # from predictions.parquet

Figures take title, grid and where as tables do. Seeds (the study's `paired` factors) are what means, SDs and pairs are over; any other factor
must be shown or fixed, because a mean over it would mix different experiments.
"""

from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from callbacks.results import write_atomically
from studies.captions import figure_caption
from studies.collect import Collection
from studies.figures import draw_figure, render
from studies.report_page import page
from studies.report_section import FigureSpec, Section, read_section
from studies.study import Study
from studies.table_formats import to_csv, to_markdown, to_tex
from studies.tables import Table, build_table
from studies.tensorboard_log import log_report


@dataclass(frozen=True)
class Drawn:
    """A figure with what is said about it; no figure where its runs have nothing to draw yet."""

    spec: FigureSpec
    figure: Figure | None
    caption: list[str]
    svg: bytes = b""


@dataclass(frozen=True)
class Report:
    """Everything that a report shows, before it becomes files."""

    study: Study
    section: Section
    collection: Collection
    tables: list[Table]
    figures: list[Drawn]


def write_report(study: Study, runs: Path, out: Path) -> Path:
    """Write the report of what is finished so far to `out` and return the path of its report.html.

    A report can be written at any time: runs that are missing or cut short are listed and not counted.
    """
    report = build_report(study, Path(runs))
    for table in report.tables:
        for suffix, content in (("md", to_markdown), ("csv", to_csv), ("tex", to_tex)):
            write_atomically(out / "tables" / f"{table.spec.name}.{suffix}", content(table, report.section))
    for drawn in report.figures:
        if drawn.figure:
            write_atomically(out / "figures" / f"{drawn.spec.name}.svg", drawn.svg)
            write_atomically(out / "figures" / f"{drawn.spec.name}.png", render(drawn.figure, "png"))
    log_report(report, out / "tensorboard")
    path = out / "report.html"
    write_atomically(path, page(report))
    return path


def build_report(study: Study, runs: Path) -> Report:
    collection = Collection.of(study, runs)
    section = read_section(study, collection)
    tables = [build_table(spec, collection.records(spec.grid), study.paired) for spec in section.tables]
    figures = []
    for spec in section.figures:
        records = collection.records(spec.grid)
        figure, note = draw_figure(spec, records, section, study.paired)
        caption = figure_caption(spec, spec.select(records), section, study.paired)
        figures.append(Drawn(spec, figure, [*caption, note] if note else caption, render(figure, "svg") if figure else b""))
    return Report(study, section, collection, tables, figures)
